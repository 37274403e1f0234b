"""What is fed to a model: choices that the rules about data share."""

from __future__ import annotations

from whygrad.evidence import Evidence
from whygrad.model import Feed, Parameter
from whygrad.rules._sizes import is_taught


def feeds_by_root(evidence: Evidence) -> dict[str, list[Feed]]:
    """Return what enters each root model and its layers, in order of first sight."""
    found: dict[str, list[Feed]] = {}
    for feed in evidence.feeds:
        module = None if feed.module is None else evidence.module_by_id.get(feed.module)
        if module is not None and feed.kind != "target":
            found.setdefault(module.root, []).append(feed)
    return found


def learning(evidence: Evidence, root: str) -> list[Parameter]:
    """Return the parameters of a root model that are taught, in forward order."""
    return [p for p in evidence.parameters_in_order if p.root == root and is_taught(evidence, p)]
