"""Run a failing program under a session that keeps a journal, and return what was found out about its end."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode

from whygrad.model import Raised
from whygrad.probe.journal import Journal
from whygrad.probe.patches import drop_own_frame
from whygrad.probe.postmortem import explain_error
from whygrad.probe.session import Session, SessionOptions


def explained(folder: Path, program: Callable[[], object], *, traced: bool = True) -> Raised:
    """Return what is known about the error that ends a program.

    Args:
        folder: Where the run file goes.
        program: Raises.
        traced: Torch calls and the nodes of backward passes are observed; a program that fails late is not traced then.
    """
    session = Session(SessionOptions(folder / "run", __file__))
    session.journal = Journal()
    session.start()
    try:
        observer = _Observer(session, active=traced)
        with _noted_passes(session, observer, walk=traced), observer:
            program()
    except Exception as error:
        failed = error
    raised = session.guard.run("post-mortem", explain_error, session, failed)
    session.finish(failed)
    assert not session.guard.failures
    failed = None
    assert raised is not None
    return raised


class _Observer(TorchFunctionMode):
    def __init__(self, session: Session, *, active: bool) -> None:
        super().__init__()
        self._session = session
        self._active = active
        session.journal.resume()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        try:
            result = func(*args, **(kwargs or {}))
        except BaseException as error:
            drop_own_frame(error)
            raise
        if self._active and not self._session.guard.inside:
            self._session.guard.run("journal", self._observe, func, args, kwargs or {}, result)
        return result

    def _observe(self, func, args, kwargs, result):
        if not self._session.tracer.paused:
            here = functools.partial(self._session.user.capture, skip_methods_of=self)
            self._session.journal.observe(func, args, kwargs, result, here)


@contextmanager
def _noted_passes(session: Session, observer: _Observer, *, walk: bool) -> Iterator[None]:
    backward, grad = torch.autograd.backward, torch.autograd.grad

    def noting(original):
        def noted(roots, *args, **kwargs):
            try:
                result = original(roots, *args, **kwargs)
            except BaseException as error:
                drop_own_frame(error)
                raise
            site = session.user.capture(1, skip_methods_of=observer)
            each = [roots] if isinstance(roots, torch.Tensor) else list(roots)
            session.journal.note_pass(each, site, session.training.steps, walk=walk)
            return result

        return noted

    with patch.object(torch.autograd, "backward", noting(backward)), patch.object(torch.autograd, "grad", noting(grad)):
        yield
