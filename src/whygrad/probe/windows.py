"""Windows: what is watched from one step to the next, and when the tracer runs."""

from __future__ import annotations

from threading import get_ident
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whygrad.probe.session import Session

TRACED_STEPS = 3  # of each optimizer
RETRACED_STEPS = 2  # after a gradient has disappeared
MAX_TRACED_STEPS = 24  # in all: a program that makes optimizers for ever must not be traced for ever
MAX_WINDOW_S = 5.0  # of our own time between two steps: a program that never steps must not be watched for ever


class Windows:
    """Opens and closes them; one per session."""

    def __init__(self, session: Session) -> None:
        self.traced_steps = 0
        self.compiled = False
        self._session = session
        self._asked = False
        self._retrace = 0  # steps to trace though the optimizers are not young any more
        self._began_s = 0.0  # of our own time
        self._closed_in = 0  # the thread in which nothing is watched since the last step; 0: something is

    def open(self) -> None:
        """Watch, or stop watching, until the next step."""
        session, training = self._session, self._session.training
        self._began_s = session.guard.own_s
        watch_calls = training.recording and not self.compiled
        thread = 0 if watch_calls else get_ident()
        if thread and thread == self._closed_in and not session.tracer.active:
            return
        self._closed_in = thread
        session.watch_calls(watch_calls)
        traced = watch_calls and self._wants_trace()
        training.closely = training.closely or traced
        session.outputs.closely = training.closely
        if traced:
            session.tracer.switch_on()
        else:
            session.tracer.switch_off()
        session.nonfinite.switch(on=watch_calls and training.closely)

    def _wants_trace(self) -> bool:
        session = self._session
        if session.options.trace_all:
            return True
        alive = [o for o in session.optimizers.alive() if o.ref() is not None]
        young = not alive or any(o.steps < TRACED_STEPS for o in alive)
        wanted = young or session.training.steps < TRACED_STEPS or self._retrace > 0
        return wanted and self.traced_steps < MAX_TRACED_STEPS

    def note_traced_step(self) -> None:
        """Count a step that was traced."""
        self.traced_steps += 1
        self._retrace = max(0, self._retrace - 1)

    def trace_again(self) -> None:
        """Trace the next steps: a gradient disappeared."""
        self._retrace = RETRACED_STEPS

    def ask_for_trace(self) -> None:
        """Trace the next steps, once: something wrote weights, and nobody saw what."""
        if not self._asked:
            self._asked = True
            self.trace_again()

    def check(self) -> None:
        """Stop watching where no step comes: a loop that only evaluates, or never calls `step()`, has seen enough."""
        session, training = self._session, self._session.training
        if session.options.trace_all:
            return
        if training.recording and session.guard.own_s - self._began_s > MAX_WINDOW_S:
            training.recording = training.closely = False
            session.outputs.close_window()
            session.note("long stretches without an optimizer step were not watched throughout")
            self.open()

    def note_compiled(self) -> None:
        """Stop looking into modules: under torch.compile the probe must not change what is compiled."""
        if not self.compiled:
            self.compiled = True
            self._session.note("torch.compile is in use: outputs of modules and uses of parameters were not observed")
            self.open()
