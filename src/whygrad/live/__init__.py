"""The terminal view of a run in progress; it reads the run's file and leaves the run alone."""
