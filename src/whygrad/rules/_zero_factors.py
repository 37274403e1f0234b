"""Where traced steps saw a gradient of zero arise: a factor that is all zero, a normalisation of a single number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from whygrad.evidence import Evidence
from whygrad.model import Event, Parameter, Place
from whygrad.rules._losses import ids_in, shape

_FACTOR = "zero_factor"  # event: a product with a factor that does not learn and is all zero
_UNIT = "unit_normalisation"  # event: a normalisation along a dimension of size 1
_MIN_CALLS = 3


class ZeroCause(NamedTuple):
    """What makes gradients zero."""

    what: str  # half a sentence
    fix: str
    place: Place | None


def zero_cause(evidence: Evidence, parameters: Sequence[Parameter]) -> ZeroCause | None:
    """Return what was seen to make the gradient of all these parameters zero, or None."""
    wanted = {parameter.id for parameter in parameters}
    for event in (*evidence.events_of(_FACTOR), *evidence.events_of(_UNIT)):
        if event.count >= _MIN_CALLS and wanted <= set(ids_in(event)):
            return _of_factor(event) if event.kind == _FACTOR else _of_unit(event)
    return None


def _of_factor(event: Event) -> ZeroCause:
    sizes = event.detail.get("shape")
    if sizes is None:
        what = "what is made of it is multiplied by the number 0"
        return ZeroCause(what, "Give that factor another value than 0, or leave the term out", event.place)
    what = f"what is made of it is multiplied by a tensor {shape(sizes)} that is all zeros, from `{event.subject}`"
    return ZeroCause(what, "Find out why that factor is always zero, and let it vary", event.place)


def _of_unit(event: Event) -> ZeroCause:
    dim, sizes = event.detail.get("dim", 0), event.detail.get("shape", ())
    what = f"`{event.subject}` runs along dimension {dim} of {shape(sizes)}, which has size 1: it leaves only signs"
    return ZeroCause(what, "Normalise along the dimension that holds the features", event.place)
