"""Values between steps: whether what a step left is what the next step of the same optimizer finds.

Compared is a sample of each parameter, around the recorded steps that are looked at closely and around every
`load_state_dict`. Events noted here:

    weights_loaded      load_state_dict on parameters that an optimizer has stepped; the subject is their model
    own_weights_loaded  likewise, with the very tensors that were to be restored: a state_dict() without clones
    weight_written      an operation wrote such a parameter in a traced step; the subject is the operation
    optimizer_loaded    load_state_dict of an optimizer that has stepped; the subject is its name
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from whygrad.probe.dataflow.arguments import Call
from whygrad.probe.dataflow.operations import Effect, Operation
from whygrad.probe.journal import storage_key
from whygrad.probe.optimizers import TrackedOptimizer, held_tensors
from whygrad.probe.parameters import Tracked
from whygrad.probe.patches import Patches
from whygrad.probe.source import Site
from whygrad.stats.kernel import is_supported

if TYPE_CHECKING:
    from whygrad.probe.session import Session

SAMPLE = 512  # elements of a parameter
MAX_STARTS = 20_000  # parameters whose first value is kept
MAX_LOADS = 256  # calls of load_state_dict around which values are compared, and each power of two from there on
_REPLACED = 0.5  # of the size of a weight
_FULL_SIZE = 4  # bytes of an element that rounds away next to nothing
_SETTING = frozenset(("fill_", "zero_", "uniform_", "normal_", "copy_", "mul_", "div_"))  # a whole tensor
_ALIASES = 8  # parameters that tell whether a state_dict holds the model's own tensors


@dataclass(frozen=True, slots=True)
class Sample:
    """A few elements of several parameters, as they are at one moment."""

    entries: list[Tracked]
    values: list[torch.Tensor]  # 1-D, one for each entry

    def fits(self, other: Sample) -> bool:
        """Return whether two samples are of the same elements."""
        return len(self.entries) == len(other.entries) and all(
            mine is yours and one.shape == another.shape
            for mine, yours, one, another in zip(self.entries, other.entries, self.values, other.values, strict=True)
        )


@dataclass(slots=True)
class Rewriting:
    """Follows the values of what optimizers hold; one per session."""

    session: Session
    _before: dict[int, Sample] = field(default_factory=dict)  # by optimizer
    _waiting: dict[int, tuple[Sample | None, Sample]] = field(default_factory=dict)  # (before, after) its last step
    _starts: dict[int, torch.Tensor] = field(default_factory=dict)  # by parameter
    _storages: tuple[int, dict[int, Tracked]] = (-1, {})  # of what optimizers have stepped, at a step
    _loads: int = 0

    # -- around steps -----------------------------------------------------------------------------------------------

    def before_step(self, optimizer: torch.optim.Optimizer, tracked: TrackedOptimizer, *, closely: bool) -> None:
        """Compare with what the last step of the optimizer left, and sample what this one begins with."""
        waiting = self._waiting.pop(tracked.id, None)
        if waiting is None and not closely:
            return
        now = _sample(self._entries(held_tensors(optimizer)))
        if waiting is not None:
            self._compare(*waiting, now)
        if closely:
            for entry, value in zip(now.entries, now.values, strict=True):
                self._note_start(entry, value)
            self._before[tracked.id] = now

    def _note_start(self, entry: Tracked, value: torch.Tensor) -> None:
        start = self._starts.get(entry.id)
        if start is None and len(self._starts) < MAX_STARTS:
            self._starts[entry.id] = value
        elif start is not None and value.element_size() < _FULL_SIZE and start.shape == value.shape and len(value):
            entry.unmoved = float((value == start).count_nonzero()) / len(value)

    def after_step(self, tracked: TrackedOptimizer) -> None:
        """Sample what a step left that was looked at closely."""
        before = self._before.pop(tracked.id, None)
        if before is not None:
            self._waiting[tracked.id] = before, _sample(before.entries)

    def forget(self, tracked: TrackedOptimizer) -> None:
        """Compare nothing with the last step that was looked at: others were passed over since."""
        self._waiting.pop(tracked.id, None)

    def _entries(self, tensors: Iterable[torch.Tensor]) -> list[Tracked]:
        found = (self.session.parameters.get(tensor) for tensor in tensors)
        return [entry for entry in found if entry is not None]

    def _compare(self, before: Sample | None, after: Sample, now: Sample) -> None:
        if not now.fits(after):
            return
        old = after.values if before is None or not before.fits(after) else before.values
        for entry, was, left, found in zip(now.entries, old, after.values, now.values, strict=True):
            entry.compared += 1
            if not torch.equal(left, found) and bool(left.isfinite().all()):
                entry.overwritten += 1
                entry.restored += torch.equal(found, was) and not torch.equal(left, was)
                entry.undone += self._undone(entry, left, found)
                entry.replaced += bool(_size(found - left) >= _REPLACED * _size(left))
                self.session.training.windows.ask_for_trace()

    def _undone(self, entry: Tracked, left: torch.Tensor, found: torch.Tensor) -> float:
        """Return how much of the way from the first value the write took back; 0 where it went further."""
        start = self._starts.get(entry.id)
        if start is None or start.shape != left.shape:
            return 0.0
        gone = _size(left - start)
        return max(0.0, 1.0 - _size(found - start) / gone) if gone > 0 else 0.0

    # -- what writes ------------------------------------------------------------------------------------------------

    def install(self, patches: Patches) -> None:
        """Watch what loads weights, and what writes them in traced steps."""
        wrap = self.session.guard.wrap
        before, after = wrap("rewriting", self._loading), wrap("rewriting", self._loaded)
        patches.observe(nn.Module, "load_state_dict", before, after)
        patches.observe(torch.optim.Optimizer, "load_state_dict", after=wrap("rewriting", self._optimizer_loaded))
        self.session.tracer.listen("rewriting", self._listen)

    def _loading(self, args: tuple[Any, ...], _kwargs: Any) -> None:
        self.session.calm.end()
        self._loads += 1
        entries = self._stepped(args[0])
        if not entries:
            return
        if self._loads > MAX_LOADS and self._loads & (self._loads - 1):
            return
        for optimizer in self.session.optimizers.alive():
            held = [entry for entry in entries if optimizer.id in entry.optimizers]
            if held and optimizer.id not in self._waiting:
                self._waiting[optimizer.id] = None, _sample(held)

    def _loaded(self, args: tuple[Any, ...], kwargs: dict[str, Any], _result: Any) -> None:
        known = self._entries(args[0].parameters())
        for entry in known:
            entry.loads += 1
        entries = [entry for entry in known if entry.optimizers and entry.steps]
        state = args[1] if len(args) > 1 else kwargs.get("state_dict")
        if not isinstance(state, Mapping):
            return
        site = self.session.user.capture(3)
        if self._loads <= MAX_LOADS:
            self.session.copies.note_load(args[0], state, site)
        if entries:
            own = {storage_key(p) for p in list(args[0].parameters())[:_ALIASES]}
            given = {storage_key(t) for t in list(state.values())[:_ALIASES] if isinstance(t, torch.Tensor)}
            kind = "own_weights_loaded" if own & (given - {0}) else "weights_loaded"
            self.session.events.note(kind, self.session.training.steps, site, entries[0].root)

    def _optimizer_loaded(self, args: tuple[Any, ...], _kwargs: Any, _result: Any) -> None:
        self.session.calm.end()
        tracked = self.session.optimizers.get(args[0])
        if tracked.steps:
            site = self.session.user.capture(3, skip_methods_of=args[0])
            self.session.events.note("optimizer_loaded", self.session.training.steps, site, tracked.name)

    def _stepped(self, module: nn.Module) -> list[Tracked]:
        return [e for e in self._entries(module.parameters()) if e.optimizers and e.steps]

    def _listen(
        self, _func: Callable[..., Any], operation: Operation, call: Call, here: Callable[[], Site | None]
    ) -> None:
        if not (operation.writes or operation.effect is Effect.SET_DATA):
            return
        target = call.args[0] if call.args else next(iter(call.kwargs.values()), None)  # nn.init names its tensor
        steps = self.session.training.steps
        if not isinstance(target, torch.Tensor):
            return
        if not steps:
            self._note_initial(target, operation, here)
            return
        if self._storages[0] != steps:
            alive = ((e, t) for e in self.session.parameters.alive() if (t := e.ref()) is not None)
            self._storages = steps, {storage_key(t): e for e, t in alive if e.optimizers and e.steps}
        entry = self._storages[1].get(storage_key(target))
        if entry is None and operation.effect is Effect.SET_DATA:
            entry = self.session.parameters.get(target)
        if entry is not None:
            self.session.events.note("weight_written", steps, here(), operation.name, parameter=entry.id)

    def _note_initial(self, target: torch.Tensor, operation: Operation, here: Callable[[], Site | None]) -> None:
        """Remember the line that sets what a parameter starts from, without a function of `nn.init`."""
        if operation.name in _SETTING:
            born = target if isinstance(target, nn.Parameter) else self.session.parameters.born_with(target)
            if born is not None and born.numel() == target.numel():
                self.session.note_written(born, here())


def _size(values: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(values.float()))


def _sample(entries: Sequence[Tracked]) -> Sample:
    """Return a copy of a few elements of each parameter that can be looked at without waiting for an accelerator."""
    chosen: list[Tracked] = []
    values: list[torch.Tensor] = []
    for entry in entries:
        tensor = entry.ref()
        if tensor is not None and tensor.is_cpu and is_supported(tensor) and tensor.layout is torch.strided:
            flat = tensor.detach()
            flat = flat.view(-1) if flat.is_contiguous() else flat.reshape(-1)
            chosen.append(entry)
            values.append(flat[:: max(1, flat.numel() // SAMPLE)][:SAMPLE].clone())
    return Sample(chosen, values)
