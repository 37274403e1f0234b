"""What many rules ask of the same evidence, worked out once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from whygrad.evidence import Evidence

_P = ParamSpec("_P")
_Answer = TypeVar("_Answer")


def once(
    function: Callable[Concatenate[Evidence, _P], _Answer],
) -> Callable[Concatenate[Evidence, _P], _Answer]:
    """Let a function of evidence, and of arguments that can be hashed, work out each answer once.

    The answer is shared by all who ask: nobody may change it.
    """

    @wraps(function)
    def answer(evidence: Evidence, /, *args: _P.args, **kwargs: _P.kwargs) -> _Answer:
        key = (function, args, tuple(kwargs.items()))
        known = evidence.derived
        if key not in known:
            known[key] = function(evidence, *args, **kwargs)
        found: _Answer = known[key]
        return found

    return answer
