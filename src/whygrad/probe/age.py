"""Whether a tensor was made before or after some moment, though no tensor carries a date.

CPython's collector can tell. It keeps what was made lately in a list of its own, the youngest generation, in the order
of making, and moves what it has looked over out of it, never back.
"""

from __future__ import annotations

import gc
import sysconfig

_GENERATIONS = not sysconfig.get_config_var("Py_GIL_DISABLED")  # a build without the GIL keeps none


class Moment:
    """A moment, now: compare objects that the collector tracks, as every tensor is, with it."""

    __slots__ = ("_mark",)

    def __init__(self) -> None:
        self._mark: list[None] = []

    def is_before(self, made: object) -> bool | None:
        """Return whether `made` is younger than this moment; None once both are too old to tell."""
        for young in reversed(gc.get_objects(generation=0) if _GENERATIONS else []):
            if young is made:
                return True
            if young is self._mark:
                return False
        return None
