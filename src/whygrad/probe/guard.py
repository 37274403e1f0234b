"""Never in the way: an error inside whygrad switches the failing part off and is reported at the end.

The guard also measures what the probe costs, and keeps the probe's own torch calls out of sight of the user's modes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.utils._python_dispatch import _disable_current_modes

_clock = time.perf_counter  # bound here: programs mock `time`
_is_grad_enabled = torch.is_grad_enabled
_set_grad_enabled: Callable[[bool], None] = torch._C._set_grad_enabled
_dispatch_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack
_NoTorchFunction: Any = torch._C.DisableTorchFunction
_R = TypeVar("_R")


class Guard:
    """Wraps the probe's callbacks; one per session."""

    def __init__(self, on_failure: Callable[[str], None] = lambda _part: None) -> None:
        self.failures: dict[str, str] = {}  # part -> the error that switched it off
        self._on_failure = on_failure  # takes out what would run on for nothing
        self.own_s = 0.0
        self._local = threading.local()

    @property
    def inside(self) -> bool:
        """Return whether this thread is executing the probe's own code."""
        return bool(getattr(self._local, "inside", False))

    def wrap(self, part: str, function: Callable[..., _R]) -> Callable[..., _R | None]:
        """Return `function` such that it never raises an Exception, and is skipped once `part` has failed.

        Calls from within the probe's own code are skipped as well: the probe does not observe itself.
        """
        failures, local, run = self.failures, self._local, self.run

        def guarded(*args: Any) -> _R | None:
            if part in failures or getattr(local, "inside", False):
                return None
            return run(part, function, *args)

        return guarded

    def run(self, part: str, function: Callable[..., _R], *args: Any) -> _R | None:
        """Call `function` once under the guard; return None if it fails, or if `part` has failed before.

        Parts may be nested: the inner one fails by itself.
        """
        if part in self.failures:
            return None
        local = self._local
        if getattr(local, "inside", False):
            return self._try(part, function, *args)
        began = _clock()
        local.inside = True
        try:
            with _NoTorchFunction():
                return self._apart(part, function, *args) if _dispatch_modes() else self._try(part, function, *args)
        finally:
            local.inside = False
            self.own_s += _clock() - began

    def look(self, part: str, function: Callable[..., _R], *args: Any) -> _R | None:
        """Call a function that only looks at tensors: as `run` does, at a fraction of its cost.

        It is skipped within the probe's own code. Grad mode is left as it is.
        """
        if part in self.failures or self.inside:
            return None
        if _dispatch_modes():
            return self.run(part, function, *args)
        began = _clock()
        try:
            with _NoTorchFunction():
                return function(*args)
        except Exception as error:
            self._fail(part, error)
            return None
        finally:
            self.own_s += _clock() - began

    def _apart(self, part: str, function: Callable[..., _R], *args: Any) -> _R | None:
        """Hide the probe's operations from a TorchDispatchMode of the user's, such as a FLOP counter."""
        with _disable_current_modes():
            return self._try(part, function, *args)

    def _try(self, part: str, function: Callable[..., _R], *args: Any) -> _R | None:
        learning = _is_grad_enabled()
        if learning:  # by hand: `torch.no_grad` takes longer than many a callback
            _set_grad_enabled(False)
        try:
            return function(*args)
        except Exception as error:
            self._fail(part, error)
            return None
        finally:
            if learning:
                _set_grad_enabled(True)

    def _fail(self, part: str, error: Exception) -> None:
        self.failures.setdefault(part, f"{type(error).__name__}: {error} ({_where(error)})")
        self._on_failure(part)

    def apart(self, part: str, listener: Callable[..., None]) -> Callable[..., None]:
        """Return a function, called from within a guarded one, whose errors switch off its own part only."""

        def listen(*args: Any) -> None:
            if part not in self.failures:
                try:
                    listener(*args)
                except Exception as error:
                    self._fail(part, error)

        return listen


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename.rsplit('/', 1)[-1]}:{trace.tb_lineno}" if trace else "?"
