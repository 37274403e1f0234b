"""Loading the compiled kernel, `native/kernel.c`, where the build had a compiler for it.

`WHYGRAD_KERNEL=torch` in the environment leaves it out: the kernels in plain torch give the same numbers.
`WHYGRAD_KERNEL=triton` is about accelerators only, see `accelerator.one_pass`.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "native"
NAMES = ("_kernel.so", "_kernel.dylib")
SWITCH = "WHYGRAD_KERNEL"
COPIES = {"best": 0, "any": 1, "avx2": 2, "avx512": 3}  # of the passes, one for each instruction set

_POINTER, _LONG, _INT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
_ARGUMENTS = {
    "whygrad_choose": (_INT,),
    "whygrad_statistics": (_POINTER, _LONG, _POINTER, _POINTER, _LONG, _LONG, _INT),
    "whygrad_one": (_LONG, _LONG, _LONG, _POINTER, _INT),
    "whygrad_samples": (_POINTER, _LONG, _LONG, _POINTER),
    "whygrad_updates": (_POINTER, _LONG, _LONG, _POINTER, _POINTER),
    "whygrad_rows": (_POINTER, _LONG, _LONG, _POINTER),
    "whygrad_add": (_POINTER, _LONG, _POINTER, _LONG, _POINTER, _POINTER, _POINTER),
}


class Library(NamedTuple):
    """The kernel, loaded twice: for a few microseconds, giving up the interpreter's lock costs more than it gives."""

    free: ctypes.CDLL  # other threads of the program run meanwhile
    held: ctypes.PyDLL

    def fit(self, elements: int) -> ctypes.CDLL:
        """Return the one to call for that many elements."""
        return self.free if elements > 65_536 else self.held


@cache
def library() -> Library | None:
    """Return the compiled kernel; None where there is none, or where it was switched off."""
    if os.environ.get(SWITCH) == "torch":
        return None
    for path in (FOLDER / name for name in NAMES):
        if path.exists():
            try:
                return _load(path)
            except (OSError, AttributeError):  # built for another machine, or from other sources
                return None
    return None


def _load(path: Path) -> Library:
    loaded = Library(ctypes.CDLL(str(path)), ctypes.PyDLL(str(path)))
    for each in loaded:
        for name, types in _ARGUMENTS.items():
            getattr(each, name).argtypes = types
        each.whygrad_rows.restype = ctypes.c_int64
    loaded.held.whygrad_choose(COPIES["best"])
    return loaded
