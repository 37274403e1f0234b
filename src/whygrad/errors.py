"""The errors that whygrad shows to people: one clear sentence each, never a traceback of ours."""


class WhygradError(Exception):
    """Something the user can act on: unreadable input, a wrong option, a missing package.

    The message is one sentence that says what is wrong and what to do. Commands print it on stderr and end with
    status 2.
    """


class RunFileError(WhygradError):
    """A run file that is missing, foreign, truncated, damaged or of a newer schema."""
