"""Evidence: the recorded facts of one rank of a run, as rules and reports see them.

Pure and torch-free. `runfile.reader` builds it from a file; tests build it by hand with `MemoryMatrices`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeVar

from whygrad.model import (
    Activation,
    Clip,
    Cut,
    Event,
    Feed,
    Group,
    Happening,
    LossCall,
    LossScale,
    Module,
    Optimizer,
    Output,
    Parameter,
    Replica,
    Role,
    Round,
    RunInfo,
    SoftmaxCall,
    Statistics,
    Step,
    Symmetry,
    Total,
)
from whygrad.spread import even_places, spread

_MOST_EVEN = 1024  # steps that stand for a thinned run
_FEWEST_EVEN = 32

_Fact = TypeVar("_Fact")
_Key = TypeVar("_Key", bound=Hashable)


class Matrices(Protocol):
    """Where the statistics of single recorded steps come from."""

    def steps(self, role: Role) -> tuple[int, ...]:
        """Return the ids of the recorded steps that have statistics in this role, ascending."""
        ...

    def read(self, step: int, role: Role) -> Mapping[int, Statistics]:
        """Return id of the parameter or output -> statistics at that step; empty where nothing was recorded."""
        ...

    def histogram(self, step: int, role: Role) -> Mapping[int, tuple[int, ...]]:
        """Return id -> counts of the 32 log2-size bins at that step; empty where nothing was recorded."""
        ...


@dataclass(frozen=True, slots=True)
class MemoryMatrices:
    """Statistics held in memory: (step, role) -> id -> statistics."""

    values: Mapping[tuple[int, Role], Mapping[int, Statistics]] = field(default_factory=dict)
    histograms: Mapping[tuple[int, Role], Mapping[int, tuple[int, ...]]] = field(default_factory=dict)

    def steps(self, role: Role) -> tuple[int, ...]:
        """Return the ids of the steps recorded in this role, ascending."""
        return tuple(sorted(step for step, r in self.values if r is role))

    def read(self, step: int, role: Role) -> Mapping[int, Statistics]:
        """Return id -> statistics at that step."""
        return self.values.get((step, role), {})

    def histogram(self, step: int, role: Role) -> Mapping[int, tuple[int, ...]]:
        """Return id -> histogram counts at that step."""
        return self.histograms.get((step, role), {})


@dataclass(frozen=True)
class Evidence:
    """All that is known about one rank of one run."""

    info: RunInfo
    modules: tuple[Module, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    cuts: tuple[Cut, ...] = ()
    outputs: tuple[Output, ...] = ()
    optimizers: tuple[Optimizer, ...] = ()
    groups: tuple[Group, ...] = ()
    replicas: tuple[Replica, ...] = ()
    feeds: tuple[Feed, ...] = ()
    symmetries: tuple[Symmetry, ...] = ()
    activations: tuple[Activation, ...] = ()
    rounds: tuple[Round, ...] = ()
    happenings: tuple[Happening, ...] = ()
    clips: tuple[Clip, ...] = ()
    loss_scales: tuple[LossScale, ...] = ()
    losses: tuple[LossCall, ...] = ()
    softmaxes: tuple[SoftmaxCall, ...] = ()
    steps: tuple[Step, ...] = ()  # of a long run not all, see `evenly`
    events: tuple[Event, ...] = ()
    totals: tuple[Total, ...] = ()
    matrices: Matrices = field(default_factory=MemoryMatrices)

    @cached_property
    def derived(self) -> dict[Hashable, Any]:
        """Return what has been worked out from these facts so far, for `rules` to fill."""
        return {}

    @cached_property
    def _totals(self) -> dict[tuple[Role, int], Total]:
        return {(t.role, t.id): t for t in self.totals}

    @cached_property
    def module_by_id(self) -> dict[int, Module]:
        """Return id -> module."""
        return {m.id: m for m in self.modules}

    @cached_property
    def optimizer_by_id(self) -> dict[int, Optimizer]:
        """Return id -> optimizer."""
        return {o.id: o for o in self.optimizers}

    @cached_property
    def parameters_in_order(self) -> tuple[Parameter, ...]:
        """Return the parameters in forward order: nearest to the input first; those of uncalled modules last."""
        return tuple(sorted(self.parameters, key=lambda p: (p.order is None, p.order or 0, p.id)))

    def cuts_of(self, parameter: Parameter) -> tuple[Cut, ...]:
        """Return the places where the path to a parameter is cut, in the order to look at them: as the tracer ranks."""
        return self._cuts_of.get(parameter.id, ())

    @cached_property
    def _cuts_of(self) -> dict[int, tuple[Cut, ...]]:
        return _grouped(sorted(self.cuts, key=lambda c: c.id), lambda c: c.parameter)

    def total(self, role: Role, tensor: int) -> Total | None:
        """Return the totals of a parameter or output over all recorded steps, or None if never recorded."""
        return self._totals.get((role, tensor))

    def events_of(self, kind: str) -> tuple[Event, ...]:
        """Return the events of one kind, first occurrence first."""
        return self._events_of.get(kind, ())

    @cached_property
    def _events_of(self) -> dict[str, tuple[Event, ...]]:
        return _grouped(self.events, lambda e: e.kind)

    def sample(self, role: Role, limit: int = 32) -> tuple[int, ...]:
        """Return at most `limit` recorded steps of a role, evenly spread, first and last included.

        Reading every step of a long run would make reports slow; rules look at a sample and at the totals.
        """
        known = self._sampled
        if (role, limit) not in known:
            steps = self.matrices.steps(role)
            known[role, limit] = tuple(steps[i] for i in spread(self.recorded_before(steps), limit))
        return known[role, limit]

    @cached_property
    def _sampled(self) -> dict[tuple[Role, int], tuple[int, ...]]:
        return {}

    @cached_property
    def is_thinned(self) -> bool:
        """Return whether the file lacks steps, as that of a long run does: the fewer are there the older they are."""
        return bool(self.steps) and self.steps[-1].id >= len(self.steps)

    @cached_property
    def lacks_statistics(self) -> bool:
        """Return whether the file lacks statistics of recorded steps, for the same reason."""
        recorded = sum(step.recorded for step in self.steps)
        return self.is_thinned or recorded > max(len(self.matrices.steps(role)) for role in Role)

    def evenly(self, steps: Iterable[Step]) -> list[Step]:
        """Return steps that stand for equal parts of the run: the given ones, or of a thinned run some of them."""
        given = list(steps)
        if not self.is_thinned:
            return given
        at = [step.id for step in given]
        return [given[i] for i in spread(at, min(_MOST_EVEN, max(_FEWEST_EVEN, even_places(at))))]

    def recorded_before(self, steps: Sequence[int]) -> Sequence[int]:
        """Return how many recorded steps the run had made before each of some; without those before all of them.

        Args:
            steps: Ids of all steps that are recorded in one role, ascending.
        """
        if not self.lacks_statistics:
            return range(len(steps))
        found = [self._recorded_before.get(step) for step in steps]
        return [count for count in found if count is not None] if None not in found else steps

    def share_since(self, role: Role, step: int) -> float:
        """Return the share of the steps recorded in a role that the run made from one of them on."""
        steps = self.matrices.steps(role)
        before = self.recorded_before(steps)
        return (before[-1] + 1 - before[bisect_left(steps, step)]) / (before[-1] + 1 - before[0])

    @cached_property
    def _recorded_before(self) -> dict[int, int]:
        return {s.id: s.recorded_before for s in self.steps if s.recorded and s.recorded_before is not None}

    def series(self, role: Role, tensor: int, steps: Sequence[int] | None = None) -> list[tuple[int, Statistics]]:
        """Return (step, statistics) of one tensor at the given steps (default: `sample(role)`), where recorded."""
        chosen = self.sample(role) if steps is None else steps
        found = ((step, self.matrices.read(step, role).get(tensor)) for step in chosen)
        return [(step, statistics) for step, statistics in found if statistics is not None]


def _grouped(facts: Iterable[_Fact], key: Callable[[_Fact], _Key]) -> dict[_Key, tuple[_Fact, ...]]:
    groups: dict[_Key, list[_Fact]] = {}
    for fact in facts:
        groups.setdefault(key(fact), []).append(fact)
    return {of: tuple(members) for of, members in groups.items()}
