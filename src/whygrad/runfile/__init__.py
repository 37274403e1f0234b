"""The run file: the only bridge from the process that is watched to those who read about it."""
