"""The rules: one file each, found by listing this package."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from whygrad.rules._base import _REGISTRY, Rule

__all__ = ["Rule", "all_rules"]


@cache
def all_rules() -> dict[str, Rule]:
    """Return every rule by its slug, in alphabetical order."""
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{__name__}.{module.name}")
    return dict(sorted(_REGISTRY.items()))
