"""Steps whose calls are not watched: what can still be told when their backward pass begins.

The loss is not finite: the graph is searched for where that began. The loss is finite: the values that risky nodes
saved tell whether their derivative is; where it is not, this one pass is watched node by node.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from whygrad.probe.nonfinite.calls import Made
from whygrad.probe.nonfinite.constants import Constants
from whygrad.probe.nonfinite.finite import Finite
from whygrad.probe.nonfinite.lines import Lines, line_of
from whygrad.probe.nonfinite.pace import Pace
from whygrad.probe.nonfinite.search import Traced, trace
from whygrad.probe.nonfinite.singular import is_risky, is_singular
from whygrad.probe.nonfinite.values import kind_of
from whygrad.probe.nonfinite.walk import Walk, walk

MAX_SEARCHES = 32  # of losses that were not finite

_clock = time.perf_counter
# Nodes that make NaN or Inf out of finite values of ordinary size; rows that are masked as a whole come second.
_RISKY = frozenset(
    {
        *("Log", "Log2", "Log10", "Log1P", "Sqrt", "Rsqrt", "Pow", "Div", "Reciprocal", "Exp", "Exp2", "Expm1", "Std"),
        *("Var", "StdMean", "VarMean", "Acos", "Asin", "Acosh", "Atanh", "Xlogy", "Prod", "LinalgInvEx", "Cosh"),
        *("Sinh", "CtcLoss", "LinalgSlogdet", "LinalgSolveEx", "Lgamma", "Logit"),
    }
)
_ROWS = ("Softmax", "LogSoftmax", "Logsumexp", "ScaledDotProduct")


@dataclass(slots=True)
class Lookout:
    """What is known of steps that are not watched; one per session."""

    finite: Finite
    lines: Lines = field(default_factory=Lines)
    constants: Constants = field(default_factory=Constants)
    pace: Pace = field(default_factory=Pace)
    _searches: int = 0

    @property
    def is_over(self) -> bool:
        """Return whether there is nothing more to find: parameters are not finite any more."""
        return self._searches >= MAX_SEARCHES

    def search(self, roots: Sequence[torch.Tensor]) -> tuple[Traced, Made | None]:
        """Return what the graph of a loss that is not finite shows, and the call where that began."""
        self._searches += 1
        graph = walk(roots)
        if graph is None:
            return Traced(), None
        traced = trace(graph, self.finite)
        if traced.old:
            self._searches = MAX_SEARCHES
            return traced, None
        made = self._made(graph, traced)
        if made is None and traced.is_given:
            return traced, None if traced.taker is None else self.lines.of(graph, traced.taker)
        return replace(traced, is_given=False), made

    def singular(self, roots: Sequence[torch.Tensor]) -> Walk | None:
        """Return the graph of a finite loss, if backward will meet a derivative in it that is not finite."""
        if not self.pace.is_due():
            return None
        began = _clock()
        graph = walk(roots)
        risky = [] if graph is None else [node for node in graph.nodes if is_risky(node)]
        found = any(is_singular(node, self.finite) for node in risky)
        self.pace.is_risky = bool(risky)
        self.pace.count(_clock() - began)
        return graph if found else None

    def _made(self, graph: Walk, traced: Traced) -> Made | None:
        if traced.node is not None:
            return self.lines.of(graph, traced.node)
        taken = None if traced.taker is None else self.lines.of(graph, traced.taker)
        risky: list[Made | None] = [*self._constants(taken)]
        halves: list[Made | None] = []
        rows: list[Made | None] = []
        for index in traced.entries:
            made = self.lines.of(graph, index)
            kind = kind_of(graph.nodes[index])
            if kind in _RISKY:
                risky.append(made)
            elif kind.startswith(_ROWS):
                rows.append(made)
            elif _is_half(graph.nodes[index]):
                halves.append(made)
            risky += self._constants(made)
        return _only(risky or halves or rows)

    def _constants(self, made: Made | None) -> tuple[Made, ...]:
        return () if made is None else self.constants.of(made)


def _is_half(node: Any) -> bool:
    """Return whether the result of a node is in float16, whose largest number is 65504."""
    return any(each.dtype is torch.float16 for each in getattr(node, "_input_metadata", ()))


def _only(candidates: Sequence[Made | None]) -> Made | None:
    """Return the first of some calls that is made, if all of them stand on one line."""
    known = [made for made in candidates if made is not None and made.site is not None]
    if len(known) < len(candidates) or len({line_of(made) for made in known}) != 1:
        return None
    return min(known, key=lambda made: made.site.lasti if made.site is not None else 0)
