"""whygrad: why does this layer not learn?

The public names and nothing else. They are imported on first use, so that reading a run file never imports torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from whygrad._version import __version__ as __version__

if TYPE_CHECKING:
    from whygrad.errors import WhygradError as WhygradError
    from whygrad.interactive.explanation import explain as explain
    from whygrad.interactive.tapping import tap as tap
    from whygrad.interactive.watching import watch as watch
    from whygrad.model import Finding as Finding
    from whygrad.model import Severity as Severity
    from whygrad.report.comparison import compare as compare
    from whygrad.run import Run as Run
    from whygrad.run import load as load

_HOMES = {
    "Finding": "whygrad.model",
    "Run": "whygrad.run",
    "Severity": "whygrad.model",
    "WhygradError": "whygrad.errors",
    "compare": "whygrad.report.comparison",
    "explain": "whygrad.interactive.explanation",
    "load": "whygrad.run",
    "tap": "whygrad.interactive.tapping",
    "watch": "whygrad.interactive.watching",
}

__all__ = ["Finding", "Run", "Severity", "WhygradError", "compare", "explain", "load", "tap", "watch"]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        msg = f"module 'whygrad' has no attribute {name!r}"
        raise AttributeError(msg)
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
