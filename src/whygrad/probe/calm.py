"""Steps that are only counted: where a step takes less than a millisecond, following each costs more than the step.

Once the budget is spent, a loop that goes on as before is followed for a round of every optimizer, then passed over for
many steps. In between, the wrapped functions of torch come here first, and all they do is count. A loss that is not
finite, another optimizer or a closure end that at once, and for some time.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from whygrad.probe.closures import closure_of

FEWEST = 15  # steps in a row that are passed over
MOST = 127
MOST_S = 0.5  # of the run's time
KEPT = 16  # one step in this many has a row in the run file; the last one has
PAUSE = 32  # steps that are followed after calm was broken; twice as many each time
MOST_PAUSE = 4096

_clock = time.perf_counter  # bound here: programs mock `time`
_function_modes: Callable[[], int] = torch._C._len_torch_function_stack
_dispatch_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack
_NoTorchFunction: Any = torch._C.DisableTorchFunction


class Kept(NamedTuple):
    """A step that was passed over, and that the run file holds all the same, for the curve of the loss."""

    number: int  # among those that were passed over, from 0
    optimizer: int  # identity
    own: int  # steps of that optimizer among them, this one included
    loss: float | None
    rates: tuple[Any, ...]  # "lr" of each group, before a scheduler sets the next one; () where they were not read


@dataclass(slots=True)
class Passed:
    """What was counted while nothing was followed."""

    steps: Counter[int] = field(default_factory=Counter)  # by the identity of the optimizer
    clears: Counter[int] = field(default_factory=Counter)  # calls of its zero_grad, likewise
    kept: list[Kept] = field(default_factory=list)
    last: int = 0  # identity of the optimizer that made the last step
    last_loss: float | None = None  # of that step
    backwards: int = 0
    backwards_since_step: int = 0
    at_step: bool = False  # it ended right after a step, not in the middle of one
    loss: float | None = None  # the last one
    own_s: float = 0.0

    def keep(self, rates: tuple[Any, ...]) -> None:
        """Keep the last step, unless there is none or it is kept already."""
        number = self.steps.total() - 1
        if number >= 0 and (not self.kept or self.kept[-1].number < number):
            self.kept.append(Kept(number, self.last, self.steps[self.last], self.last_loss, rates))


@dataclass(slots=True)
class Calm:
    """The steps that are passed over; one per session."""

    on_end: Callable[[Passed], None] = lambda _passed: None  # called with what has to be made up for
    on_backward: Callable[[torch.Tensor], bool | None] | None = None  # called with each loss whose graph is risky
    left: int = 0  # steps; 0: the loop is followed
    pause: int = 0  # steps that are followed in any case
    _broken: int = 0  # times
    _optimizers: frozenset[int] = frozenset()  # identities of those at work
    _row: int = FEWEST
    _passed: Passed = field(default_factory=Passed)

    def begin(self, optimizers: Iterable[torch.optim.Optimizer], step_s: float) -> None:
        """Pass over the next steps of some optimizers, more of them each time; `step_s` is what a step takes."""
        self.left = min(self._row, int(MOST_S / step_s) if step_s > 0 else MOST)
        self._row = min(2 * self._row + 1, MOST)
        self._optimizers = frozenset(map(id, optimizers))

    def end(self) -> None:
        """Follow the loop again."""
        if self.left:
            self._end(at_step=False)

    def _end(self, *, at_step: bool) -> None:
        self.left = 0
        passed, self._passed = self._passed, Passed()
        passed.at_step = at_step
        passed.keep(())
        self.on_end(passed)

    def _break(self) -> None:
        """Follow the loop again, and for a while: it did not go on as before."""
        self.pause = min(PAUSE << self._broken, MOST_PAUSE)
        self._broken += self.pause < MOST_PAUSE
        self._row = FEWEST
        self._end(at_step=False)

    # -- what the wrapped functions ask first: whether to pass the call on without another look ------------------------

    def passes(self, *_: Any) -> bool:
        """Pass a call over that needs no count."""
        return self.left > 0

    def passes_backward(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Count a backward pass, unless there is something to see."""
        if not self.left:
            return False
        began = _clock()
        root = args[0] if args else kwargs.get("tensors")
        if not isinstance(root, torch.Tensor) or _function_modes() or _dispatch_modes() or not self._note_loss(root):
            self._break()
            return False
        if self.on_backward is not None and self.on_backward(root):
            self.left = 1  # there is something to see: follow the loop from the next step on
        self._passed.backwards += 1
        self._passed.backwards_since_step += 1
        self._passed.own_s += _clock() - began
        return True

    def _note_loss(self, loss: torch.Tensor) -> bool:
        """Return whether a loss is finite; one on an accelerator is not read, for that would wait for it."""
        self._passed.loss = None
        try:
            if loss.device.type == "cpu" and loss.numel() == 1:
                with _NoTorchFunction():
                    number = loss.item()
                if isinstance(number, complex) or number - number != 0:
                    return False
                self._passed.loss = number
        except Exception:  # a tensor that has no number; whoever follows the loop knows what to do with it
            return False
        return True

    def passes_clear(self, args: tuple[Any, ...], _kwargs: dict[str, Any]) -> bool:
        """Count a call of an optimizer's zero_grad."""
        if not self.left:
            return False
        self._passed.clears[id(args[0])] += 1
        return True

    def passes_step(self, optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Return whether a step that begins is passed over: one of the same optimizers, without a closure."""
        if not self.left:
            return False
        if id(optimizer) in self._optimizers and closure_of(args, kwargs) is None:
            return True
        self._break()
        return False

    def passes_end_of_step(self, optimizer: torch.optim.Optimizer) -> bool:
        """Count a step that was made, if it was passed over."""
        if not self.left:
            return False
        passed, key = self._passed, id(optimizer)
        passed.last, passed.last_loss = key, passed.loss
        passed.steps[key] += 1
        passed.backwards_since_step = 0
        self.left -= 1
        if not self.left % KEPT:
            passed.keep(tuple(group.get("lr") for group in optimizer.param_groups))
        if not self.left:
            self._end(at_step=True)
        return True
