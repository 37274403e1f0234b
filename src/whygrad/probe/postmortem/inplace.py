"""In-place writes that autograd refuses: of a value that backward needs, and of a leaf that requires grad."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, cast

import torch

from whygrad.model import Place
from whygrad.probe.journal import Call, storage_key
from whygrad.probe.postmortem.failure import Failure, Found
from whygrad.probe.postmortem.statements import is_a, short_name, statement_at, written
from whygrad.probe.postmortem.suspects import only_module, only_suspect
from whygrad.probe.saved import Graph, Saved, graph_of, nearest, saved_by
from whygrad.probe.source import Site, place_or_none

_NEAR = 32  # nodes: a call such as F.linear makes a few of its own around the one that saves
_TOLD = re.compile(r"\[([\d, ]*)\]\].*?is at version (\d+); expected version (\d+)")


@dataclass(frozen=True, slots=True)
class _Told:
    """What the message tells about the tensor that was modified."""

    shape: str
    version: int
    expected: int


def explain_modified(failure: Failure) -> Found:
    """Explain "one of the variables needed for gradient computation has been modified by an inplace operation"."""
    told = _told(failure.text)
    graph = graph_of(failure.roots())
    saved = _find(graph, told) if told is not None else None
    if told is None or saved is None or saved.tensor is None:
        return Found()
    leaf = _leaf(failure, saved.tensor)
    maker = None if leaf is not None else _maker(failure, saved)
    origin = saved.node if leaf is not None else maker  # a leaf was made long ago: what counts is who needs its value
    made = None if origin is None else failure.journal.made(origin._sequence_nr())
    writer = _writer(failure, saved.tensor, told, maker, leaf)
    if writer is None and leaf is None and told.version == told.expected + 1:
        return _suspected(failure, graph, saved, made)
    module = None if writer is None else _module(failure, writer)
    return Found(
        failure.name(leaf) if leaf is not None else _name(failure, saved.tensor, writer, made),
        "" if writer is None else writer.operation,
        None if made is None else place_or_none(made.site),
        module or (None if writer is None else place_or_none(writer.site)),
    )


def _module(failure: Failure, writer: Call) -> Place | None:
    """Return the line that made the module that wrote its input in place, if one did and only one can have."""
    if writer.site is None or written(statement_at(writer.site)) is not None:
        return None
    suspect = only_module(failure, writer.operation)
    return None if suspect is None else suspect.place


def _suspected(failure: Failure, graph: Graph, saved: Saved, made: Call | None) -> Found:
    """Return the tensor and the line of the source that could have written it, if only one could."""
    tensor = cast("torch.Tensor", saved.tensor)
    last = tensor.grad_fn  # of an input: the write, if autograd followed it
    writers = [last] if last is not None else [node for node in graph.nodes if _consumes(node, saved.node)]
    suspect = only_suspect(failure, writers)
    name = _name(failure, tensor, None, made) or ("" if suspect is None else suspect.name)
    place = None if made is None else place_or_none(made.site)
    return Found(name, "", place, None if suspect is None else suspect.place)


def _consumes(node: Any, maker: Any) -> bool:
    return any(parent is maker for parent, _ in node.next_functions)


def _told(text: str) -> _Told | None:
    match = _TOLD.search(text)
    return None if match is None else _Told(match[1], int(match[2]), int(match[3]))


def _find(graph: Graph, told: _Told) -> Saved | None:
    """Return the saved tensor that the message is about: autograd complains about it in the same words."""
    for node in graph.nodes:
        for saved in saved_by(node):
            if saved.tensor is not None and saved.tensor._version == told.version and _told(saved.complaint) == told:
                return saved
    return None


def _leaf(failure: Failure, tensor: torch.Tensor) -> torch.Tensor | None:
    """Return the leaf that requires grad and that a saved tensor is, or is a view of."""
    base = tensor if tensor._base is None else tensor._base
    if base.requires_grad and base.grad_fn is None:
        return base
    storage = storage_key(tensor)
    alive = (entry.ref() for entry in failure.watcher.parameters.alive())
    return next((p for p in alive if p is not None and storage and storage_key(p) == storage), None)


def _maker(failure: Failure, saved: Saved) -> Any:
    """Return the node that made a saved tensor, None where that does not show."""
    if saved.is_result or saved.tensor is None:
        return saved.node
    storage = storage_key(saved.tensor)
    for node in (*nearest(saved.node, _NEAR), saved.node):
        if storage in failure.journal.storages(node._sequence_nr()):
            return node
    return None


def _writer(failure: Failure, tensor: torch.Tensor, told: _Told, maker: Any, leaf: torch.Tensor | None) -> Call | None:
    """Return the first write after the tensor was saved."""
    since = maker._sequence_nr() if maker is not None else 0
    storage = storage_key(tensor)
    first = failure.journal.written(storage, told.expected + 1, since)
    if first is not None:
        return first
    if leaf is not None:
        stepped = _stepped(failure, leaf)
        if stepped is not None:
            return Call("step", stepped)
    versions = range(told.expected + 2, told.version + 1)
    return next(filter(None, (failure.journal.written(storage, version, since) for version in versions)), None)


def _stepped(failure: Failure, parameter: torch.Tensor) -> Site | None:
    """Return the line of the last step of the optimizer that holds a parameter."""
    tracked = failure.watcher.parameters.get(parameter)
    holders = () if tracked is None else tracked.optimizers
    return next((each.stepped for each in failure.watcher.optimizers if each.id in holders and each.stepped), None)


def _name(failure: Failure, tensor: torch.Tensor, writer: Call | None, made: Call | None) -> str:
    storage = storage_key(tensor)
    held = failure.name_where(lambda each: storage != 0 and storage_key(each) == storage)
    target = "" if writer is None or writer.site is None else short_name(written(statement_at(writer.site)))
    name = failure.made_name(made)
    now = failure.names.get(name)
    is_another = is_a(now, torch.Tensor) and now.shape != tensor.shape  # a call within the line made it
    return held or target or ("" if is_another else name)


def explain_leaf(failure: Failure) -> Found:
    """Explain "a (view of a) leaf Variable that requires grad is being used in an in-place operation"."""
    tensor = failure.operand(_is_leaf_or_view)
    if tensor is None:
        return Found()
    leaf = tensor if tensor._base is None else tensor._base
    made = failure.made(tensor)
    if made is None:
        return Found(failure.name(leaf), made_at=_birth(failure, leaf))
    return Found(failure.name(leaf), made.operation, place_or_none(made.site))


def _is_leaf_or_view(tensor: torch.Tensor) -> bool:
    base = tensor if tensor._base is None else tensor._base
    return base.requires_grad and base.grad_fn is None


def _birth(failure: Failure, leaf: torch.Tensor) -> Place | None:
    tracked = failure.watcher.parameters.get(leaf)
    return place_or_none(failure.watcher.parameters.birth(leaf).site if tracked is None else tracked.made)


def explain_view(failure: Failure) -> Found:
    """Explain "Output 0 of SplitBackward0 is a view and is being modified inplace": the write itself was refused."""
    tensor = failure.operand(lambda each: each.grad_fn is not None and each._base is not None)
    if tensor is None:
        return Found(changed_at=failure.place)
    made = failure.made(tensor)
    target = None if failure.site is None else written(statement_at(failure.site))
    place = None if made is None else place_or_none(made.site)
    return Found(failure.name(tensor) or short_name(target), "", place, failure.place)
