import pytest

from tests.rules.builders import check
from tests.rules.loss_builders import LOSS_LINE, call, run

SLUG = "target-mismatch"
SIGNS = {"target_low": -1.0, "target_negative": 0.5}


@pytest.mark.parametrize(
    "wrong",
    [
        call("binary_cross_entropy_with_logits", **SIGNS),
        call("binary_cross_entropy", target_high=255.0, target_above_one=0.9),
        call("cross_entropy", **SIGNS),
        call("kl_div", **SIGNS),
        call("soft_margin_loss"),
        call("margin_ranking_loss"),
    ],
)
def test_targets_outside_of_what_the_loss_takes_are_found(wrong):
    (finding,) = check(SLUG, run(wrong))

    assert (finding.place, finding.tensors) == (LOSS_LINE, ("head.weight",))
    assert f"`{wrong.function}`" in finding.message


@pytest.mark.parametrize(
    "fine",
    [
        call("binary_cross_entropy_with_logits"),
        call("binary_cross_entropy_with_logits", **SIGNS, calls=2),
        call("cross_entropy", target_is_index=True, target_shape=(32,), target_high=4.0, target_above_one=0.6),
        call("cross_entropy", target_high=3.0, target_above_one=0.2),  # counts
        call("soft_margin_loss", **SIGNS),
        call("hinge_embedding_loss", target_low=1.0),  # one class in the batch
        call("mse_loss", target_high=255.0, target_above_one=0.9),
    ],
)
def test_targets_that_the_loss_takes_are_left_alone(fine):
    assert check(SLUG, run(fine)) == []
