"""Each parameter has a state, in one or two words."""

import pytest

from tests.report.builders import parameter
from whygrad.model import PathEnd
from whygrad.report.states import state


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"gradient_steps": 5, "optimizers": (0,)}, "learns"),
        ({"gradient_steps": 5, "optimizers": ()}, "no optimizer"),
        ({"gradient_steps": 0, "path": PathEnd.CUT}, "cut"),
        ({"gradient_steps": 0, "path": PathEnd.UNUSED}, "unused"),
        ({"gradient_steps": 0}, "no gradient"),
        ({"requires_grad": False}, "frozen"),
    ],
)
def test_a_parameter_learns_or_says_why_not(fields, expected):
    assert state(parameter("w", **fields)) == expected
