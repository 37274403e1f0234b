"""Evidence: the recorded facts of one rank of a run, as rules and reports see them.

Pure and torch-free. `runfile.reader` builds it from a file; tests build it by hand with `MemoryMatrices`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

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
    steps: tuple[Step, ...] = ()
    events: tuple[Event, ...] = ()
    totals: tuple[Total, ...] = ()
    matrices: Matrices = field(default_factory=MemoryMatrices)

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
        return tuple(sorted((c for c in self.cuts if c.parameter == parameter.id), key=lambda c: c.id))

    def total(self, role: Role, tensor: int) -> Total | None:
        """Return the totals of a parameter or output over all recorded steps, or None if never recorded."""
        return self._totals.get((role, tensor))

    def events_of(self, kind: str) -> tuple[Event, ...]:
        """Return the events of one kind, first occurrence first."""
        return tuple(e for e in self.events if e.kind == kind)

    def sample(self, role: Role, limit: int = 32) -> tuple[int, ...]:
        """Return at most `limit` recorded steps of a role, evenly spread, first and last included.

        Reading every step of a long run would make reports slow; rules look at a sample and at the totals.
        """
        steps = self.matrices.steps(role)
        if len(steps) <= limit:
            return steps
        return tuple(steps[round(i * (len(steps) - 1) / (limit - 1))] for i in range(limit))

    def series(self, role: Role, tensor: int, steps: Sequence[int] | None = None) -> list[tuple[int, Statistics]]:
        """Return (step, statistics) of one tensor at the given steps (default: `sample(role)`), where recorded."""
        chosen = self.sample(role) if steps is None else steps
        found = ((step, self.matrices.read(step, role).get(tensor)) for step in chosen)
        return [(step, statistics) for step, statistics in found if statistics is not None]
