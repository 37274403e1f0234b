import pytest

from tests.rules.builders import check, event
from tests.rules.loss_builders import LOSS_LINE, call, run

SLUG = "loss-broadcast"
SPREAD = {"shape": (32, 1), "target_shape": (32,), "result_shape": (32, 32)}


def test_a_column_against_a_flat_target_is_found_at_the_loss():
    (finding,) = check(SLUG, run(call("mse_loss", **SPREAD)))

    assert (finding.place, finding.tensors) == (LOSS_LINE, ("head.weight",))
    assert "[32, 1] against [32] broadcasts to [32, 32]" in finding.message


def test_an_operation_on_the_way_to_the_loss_is_found_at_its_line():
    shapes = {"shapes": [[32], [32, 1]], "result": [32, 32], "parameters": [0], "learns": True}
    (finding,) = check(SLUG, run(events=[event("outer_broadcast", place=LOSS_LINE, subject="sub", count=3, **shapes)]))

    assert (finding.place, finding.tensors) == (LOSS_LINE, ("head.weight",))


def test_a_target_that_was_spread_is_put_down_to_what_the_loss_trains():
    shapes = {"shapes": [[32], [32, 1]], "result": [32, 32], "parameters": [], "learns": False}
    spread = event("outer_broadcast", place=LOSS_LINE, subject="mul", count=3, **shapes)

    assert [finding.tensors for finding in check(SLUG, run(call("mse_loss"), events=[spread]))] == [("head.weight",)]


@pytest.mark.parametrize(
    "fine",
    [
        call("mse_loss"),
        call("mse_loss", target_shape=(), result_shape=(32, 5)),
        call("mse_loss", target_shape=(32, 1), result_shape=(32, 5)),
        call("mse_loss", **SPREAD, calls=2),
        call("sub", **SPREAD),  # the event says more about it, and whether it is meant
    ],
)
def test_what_grows_to_no_more_than_the_larger_one_is_left_alone(fine):
    assert check(SLUG, run(fine)) == []
