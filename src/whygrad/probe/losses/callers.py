"""Which module an operation runs in, and which library function stands between it and the user's line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType

from torch import nn

from whygrad.probe.source import PACKAGE, UserCode, local_names


def module_in_container(user: UserCode) -> nn.Module | None:
    """Return the library module that the current operation is the forward of, if another library module calls it.

    The user's line that calls a Sequential says nothing about the activation in it; a line that calls the activation
    says everything.
    """
    inner: nn.Module | None = None
    for frame in _library_frames(user):
        if frame.f_code.co_name != "forward":
            continue
        owner = local_names(frame).get("self")
        if isinstance(owner, nn.Module):
            if inner is not None:
                return inner
            inner = owner
    return None


def library_function(user: UserCode) -> str:
    """Return the qualified name of the library function that the user's line calls; "" if there is none in between."""
    name = ""
    for frame in _library_frames(user):
        name = frame.f_code.co_qualname
    return name


def _library_frames(user: UserCode) -> Iterator[FrameType]:
    """Yield the frames between the present one and the user's innermost one."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not user.owns(frame.f_code):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            yield frame
        frame = frame.f_back
