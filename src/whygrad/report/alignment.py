"""Which parameter of one run is which of another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from whygrad.model import Parameter
from whygrad.report.writing import plural


@dataclass(frozen=True, slots=True)
class Alignment:
    """Pairs of parameters in forward order of the first run, how they were found, and what is left over."""

    pairs: tuple[tuple[Parameter, Parameter], ...]
    by_name: int
    by_shape: int
    only_a: tuple[Parameter, ...]
    only_b: tuple[Parameter, ...]

    @property
    def sentence(self) -> str:
        """Return how the parameters were aligned: "4 parameters aligned by name, 2 by order and shape"."""
        parts = [f"{plural(self.by_name, 'parameter')} aligned by name"]
        parts += [f"{self.by_shape} by order and shape"] if self.by_shape else []
        parts += [f"{len(self.only_a)} only in the first"] if self.only_a else []
        parts += [f"{len(self.only_b)} only in the second"] if self.only_b else []
        return ", ".join(parts)


def align(a: Sequence[Parameter], b: Sequence[Parameter]) -> Alignment:
    """Pair parameters, given in forward order: equal name and shape first, then order and shape, then name alone."""
    exact = dict(_by_name(a, b, same_shape=True))
    shaped = dict(_by_shape([p for p in a if p.id not in exact], _without(b, exact)))
    taken = exact | shaped
    resized = dict(_by_name([p for p in a if p.id not in taken], _without(b, taken), same_shape=False))
    taken |= resized
    return Alignment(
        pairs=tuple((p, taken[p.id]) for p in a if p.id in taken),
        by_name=len(exact) + len(resized),
        by_shape=len(shaped),
        only_a=tuple(p for p in a if p.id not in taken),
        only_b=tuple(_without(b, taken)),
    )


def _without(b: Sequence[Parameter], taken: dict[int, Parameter]) -> list[Parameter]:
    used = {p.id for p in taken.values()}
    return [p for p in b if p.id not in used]


def _by_name(a: Sequence[Parameter], b: Sequence[Parameter], *, same_shape: bool) -> Iterator[tuple[int, Parameter]]:
    named = {p.name: p for p in b}
    for p in a:
        other = named.pop(p.name, None)
        if other is not None and (p.shape == other.shape or not same_shape):
            yield p.id, other


def _by_shape(a: Sequence[Parameter], b: Sequence[Parameter]) -> Iterator[tuple[int, Parameter]]:
    """Yield the longest common runs of shapes."""
    matcher = SequenceMatcher(None, [p.shape for p in a], [p.shape for p in b], autojunk=False)
    for start_a, start_b, size in matcher.get_matching_blocks():
        yield from ((a[start_a + i].id, b[start_b + i]) for i in range(size))
