"""What is aimed at, and whether a measurement meets it, misses it, or cannot tell."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from benchmarks.default_mode import LENGTHS
from benchmarks.turns import AGAIN, EVERY

_DEFAULT = {"tiny MLP 4-8-2": 1.10, "": 1.02}
RATIOS = {
    **dict.fromkeys(LENGTHS, _DEFAULT),
    EVERY: {"ResNet-18, 32x32": 1.05, "decoder, 6 layers": 1.05, "MLP 784-512-512-10": 1.13},
}
"""Ratio to the plain loop that is aimed at, by workload; "" for all others."""

READS = {"statistics": 1.5, "with full histogram": 2.5}  # multiples of one read of the gradients
LESSON_SHARE = 0.25  # of the time of the lesson's two numbers, for the statistics
ROW_BYTES = 80  # of one tensor in one role at one step; a histogram is 128 more
START_MS = {  # processor time
    "import whygrad": 50,
    "run: import torch adds": 150,
    "report: 3 steps": 300,
    "report: 300 parameters, 1,000 steps": 300,
    "report: 100,000 steps": 300,
}
LARGEST = 3  # times the largest parameter may be added to the memory


class Outcome(Enum):
    """Of a measurement against an aim."""

    MET = "met"
    MISSED = "missed"
    UNRESOLVED = "not resolved"


def aim_of(variant: str, workload: str) -> float | None:
    """Return the ratio that is aimed at."""
    aims = RATIOS.get(variant, {})
    return aims.get(workload, aims.get(""))


def noise_of(variants: Mapping[str, Mapping[str, float]]) -> float:
    """Return by how much the plain loop differs from itself: half of what lies between the quartiles of the control."""
    control = variants[AGAIN]
    return (control["high"] - control["low"]) / 2


def judge(value: float, aim: float, noise: float) -> Outcome:
    """Return whether a ratio is within its aim; both are 1 where nothing is added.

    It cannot be told where the noise reaches across the aim and is as wide as what is claimed.
    """
    if abs(value - aim) <= noise and 2 * noise > aim - 1:
        return Outcome.UNRESOLVED
    return Outcome.MET if round(value, 2) <= aim else Outcome.MISSED


def beside_aim(text: str, aim: str, outcome: Outcome) -> str:
    """Return a measurement with its aim, in bold where it was missed."""
    match outcome:
        case Outcome.MET:
            return f"{text} (aim {aim})"
        case Outcome.MISSED:
            return f"**{text}** (aim {aim}, missed)"
        case Outcome.UNRESOLVED:
            return f"{text} (aim {aim}, not resolved)"


def at_most(value: float, aim: float, form: str = ".2f", aim_form: str = "g") -> str:
    """Return a measurement beside an aim that it may not exceed, as far as is shown."""
    outcome = Outcome.MET if float(f"{value:{form}}") <= aim else Outcome.MISSED
    return beside_aim(f"{value:{form}}", f"{aim:{aim_form}}", outcome)
