"""What the probe saw of the operation where the first NaN or Inf arose, and the words for it."""

from __future__ import annotations

from typing import Any

from whygrad.evidence import Evidence
from whygrad.model import Event
from whygrad.rules._text import counted, number

_NONFINITE = "nonfinite"
_PARAMETERS = "nonfinite-parameters"

_LOGS = ("log", "log2", "log10", "log1p", "logit", "xlogy")
_ROOTS = ("sqrt", "rsqrt")
_POWERS = ("pow", "rpow", "ipow", "float_power")
_QUOTIENTS = ("truediv", "rtruediv", "itruediv", "div", "divide", "true_divide", "reciprocal", "rdiv", "rsub")
_EXPONENTIALS = ("exp", "exp2", "expm1", "sinh", "cosh")
_NORMS = ("norm", "vector_norm", "cdist", "dist", "pairwise_distance")
_SPREADS = ("std", "var", "std_mean", "var_mean")
_ARCS = ("acos", "asin", "arccos", "arcsin", "acosh", "atanh", "arctanh")
_ROWS = ("softmax", "log_softmax", "logsumexp", "scaled_dot_product_attention", "multi_head_attention_forward")
_DECOMPOSITIONS = ("svd", "linalg_svd", "eigh", "linalg_eigh", "eig", "linalg_eig", "symeig")


def seen_birth(evidence: Evidence, step: int) -> Event | None:
    """Return the operation that was seen to make the first value that is not finite; None if none was.

    Where the loss of a step is NaN because of the parameters, they became so in the step before it.
    """
    turns = max(1, sum(optimizer.steps > 0 for optimizer in evidence.optimizers))
    events = [e for e in evidence.events_of(_NONFINITE) if e.first_step <= step and e.last_step >= step - turns]
    return max(events, key=lambda event: min(event.last_step, step), default=None)


def last_birth_step(evidence: Evidence) -> int:
    """Return the last step in which such an operation was seen; the last of all where none was."""
    return max((event.last_step for event in evidence.events_of(_NONFINITE)), default=evidence.info.steps - 1)


def known_broken(evidence: Evidence) -> set[int]:
    """Return the ids of the parameters that were seen to be not finite outside recorded steps."""
    return {number for event in evidence.events_of(_PARAMETERS) for number in event.detail["parameters"]}


def described(birth: Event) -> str:
    """Return half a sentence about what happened: `log` of 0 made it."""
    detail = birth.detail
    side = detail["side"]
    if not birth.subject:
        return "it came in with a value that has no gradient" if side == "data" else f"an operation in {side} made it"
    operation = f"`{birth.subject}`"
    if side == "data":
        return f"what {operation} was given held {detail['value']} already"
    if side == "backward":
        return f"it arose in the backward of {operation}{_slope(birth.subject)}"
    return f"{operation} made it{_cause(birth.subject, detail.get('inputs', []))}"


def _slope(operation: str) -> str:
    name = operation.rstrip("_")
    if name in _ROOTS + _POWERS:
        return ", whose derivative is infinite at 0"
    if name in _NORMS:
        return ", whose derivative does not exist at 0"
    if name in _SPREADS:
        return ", whose derivative does not exist where all values are equal"
    if name in _ARCS:
        return ", whose derivative is infinite at 1 and -1"
    if name in _DECOMPOSITIONS:
        return ", whose derivative divides by the differences of singular or eigenvalues, and two of them are equal"
    if name in _LOGS + _QUOTIENTS:
        return ", whose derivative is infinite at 0: a value that is thrown away later still has its derivative taken"
    if name in _EXPONENTIALS:
        return ", which had overflowed: a value that is thrown away later still has its derivative taken"
    return ""


def _cause(operation: str, inputs: list[dict[str, Any]]) -> str:
    name = operation.rstrip("_")
    if not inputs:
        return ""
    first, last = inputs[0], inputs[-1]
    if name in _SPREADS and first["count"] == 1:
        return ": the spread of one element is NaN"
    if "low" not in first:
        return " of values none of which is finite"
    if name in _LOGS + _ROOTS + _POWERS and first["low"] < 0:
        return f": its smallest input is {number(first['low'])}"
    if name in _LOGS + _POWERS + _QUOTIENTS + ("rsqrt",) and last.get("zeros"):
        return f": {counted(last['zeros'], 'element')} of its input {'is' if last['zeros'] == 1 else 'are'} 0"
    if name in _ROWS:
        return ": a whole row of its input is -Inf, so that nothing is left to choose from"
    largest = max((max(abs(each["low"]), abs(each["high"])) for each in inputs if "low" in each), default=0.0)
    return f" of finite values up to {number(largest)} in size ({first['dtype']})"


def remedy(birth: Event) -> str:
    """Return what to change, as one sentence."""
    name = birth.subject.rstrip("_")
    side = birth.detail["side"]
    if birth.place is None:
        return "Run it once with `whygrad run --trace-all`, which follows every step and names the line"
    if side == "data":
        return "Look for NaN and Inf in what is loaded or computed before this line, and drop or repair those samples"
    if name in _SPREADS:
        return "Skip groups of fewer than two elements, or take `unbiased=False`, and add an epsilon to the spread"
    if name in _ROWS:
        return "Leave at least one entry of every row unmasked, or skip the rows that are masked as a whole"
    if name == "ctc_loss":
        return "Set zero_infinity=True, and give each target enough input frames"
    if name in _QUOTIENTS:
        return f"Keep the divisor of `{birth.subject}` away from 0: add an epsilon, or clamp it, or skip the empty case"
    if name in _EXPONENTIALS:
        return f"Bound what `{birth.subject}` is given, with clamp, or by subtracting the largest value before"
    if name in _DECOMPOSITIONS:
        return "Break ties between singular or eigenvalues: do not start from a multiple of the identity, or add noise"
    if name in _ARCS:
        return f"Keep what `{birth.subject}` is given away from 1 and -1: clamp it to within 1 - 1e-6"
    if name in _LOGS + _ROOTS + _POWERS + _NORMS:
        return f"Keep what `{birth.subject}` is given away from 0: add an epsilon, or clamp it from below, before"
    return f"Keep what `{birth.subject}` is given inside the range where it, and its derivative, is finite"
