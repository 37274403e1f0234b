"""Making many objects at once without Python's search for garbage among all that there are.

Python searches whenever enough objects have been made. An import, or the reading of a run, makes many objects and no
garbage; and with torch loaded one search takes longer than whygrad's whole import.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Let the garbage collector rest while the block runs, unless it rests already."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def count_as_old() -> None:
    """Put all objects among the oldest, so that those made just now do not bring the next search nearer.

    For once in a process, after what stays has been imported: garbage among them is found late.
    """
    if gc.get_freeze_count() == 0:  # else the program has put objects aside itself, which `unfreeze` would bring back
        gc.freeze()
        gc.unfreeze()
