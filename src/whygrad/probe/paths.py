"""What the tracer says of each parameter's path to the loss, added up over the traced steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from whygrad.model import Cut, CutKind, PathEnd, Place
from whygrad.probe.dataflow import result
from whygrad.probe.events import place_as_dict
from whygrad.probe.parameters import Tracked

if TYPE_CHECKING:
    from whygrad.probe.session import Session

# What says more about a parameter wins over what an other step said; a gradient that arrived once wins over all.
_TELLING = (
    PathEnd.REACHED,
    PathEnd.CUT,
    PathEnd.UNDEFINED,
    PathEnd.NON_LEAF,
    PathEnd.CLEARED,
    PathEnd.RESTRICTED,
    PathEnd.IGNORED,
    PathEnd.UNUSED,
    PathEnd.FROZEN,
)
LOST_TERM = "lost_term"  # event: a term of the loss that depends on parameters and gives them no gradient

_Key = tuple[int, CutKind, str, Place | None]


@dataclass(slots=True)
class CutTable:
    """The cuts found so far; equal ones of several steps are one."""

    _found: dict[_Key, Cut] = field(default_factory=dict)

    def add(self, parameter: int, cut: result.Cut) -> None:
        """Count a cut of a parameter's path."""
        key = (parameter, cut.kind, cut.operation, cut.place)
        known = self._found.get(key)
        self._found[key] = Cut(
            id=len(self._found) if known is None else known.id,
            parameter=parameter,
            kind=cut.kind,
            operation=cut.operation,
            place=cut.place,
            within=cut.within,
            reentry=cut.reentry,
            mode=cut.mode_text,
            mode_at=cut.mode_place,
            inferred=cut.inferred,
            distance=cut.distance,
            as_target=cut.as_target,
            steps=1 if known is None else known.steps + 1,
        )

    def facts(self) -> Iterator[Cut]:
        """Yield the cuts."""
        yield from self._found.values()


def merge_paths(session: Session, entries: Iterable[Tracked]) -> None:
    """Ask the tracer where the paths of parameters end, while their gradients are still there."""
    for entry in entries:
        tensor = entry.ref()
        if tensor is None:
            continue
        end = session.tracer.explain(tensor)
        if end.kind not in _TELLING or not _tells_more(end.kind, entry.path):
            continue
        entry.path, entry.ends_at, entry.ends_with = end.kind, end.ends_at, end.operation
        if end.kind in (PathEnd.CUT, PathEnd.UNDEFINED):
            for cut in end.cuts:
                session.cuts.add(entry.id, cut)


def note_lost_terms(session: Session) -> None:
    """Note the terms of the loss that depend on parameters and give them no gradient."""
    for cut, tensors in session.tracer.lost_terms():
        if cut.place is None:
            continue
        entries = [entry for tensor in tensors if (entry := session.parameters.get(tensor)) is not None]
        session.events.note_place(
            LOST_TERM,
            session.training.steps,
            cut.place,
            cut.operation,
            cut=cut.kind.value,
            mode=cut.mode_text,
            mode_at=place_as_dict(cut.mode_place),
            reentry=place_as_dict(cut.reentry),
            inferred=cut.inferred,
            parameters=[entry.id for entry in entries],
        )


def _tells_more(kind: PathEnd, known: PathEnd | None) -> bool:
    return known is None or _TELLING.index(kind) <= _TELLING.index(known)
