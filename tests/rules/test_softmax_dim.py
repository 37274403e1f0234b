import pytest

from tests.rules.builders import check
from tests.rules.loss_builders import ACTIVATION_LINE, run, softmax

SLUG = "softmax-dim"


@pytest.mark.parametrize(
    "wrong",
    [
        softmax((32, 5), 0, (1, "nll_loss")),
        softmax((2, 32, 7), 1, (2, "target"), (2, "sum"), function="log_softmax"),
        softmax((32, 9), 0, (1, "sum")),
        softmax((32, 9), 0, (1, "renormalised")),
        softmax((32, 4, 9, 9), 1, (3, "product"), is_of_product=True),
    ],
)
def test_a_softmax_along_another_dimension_than_the_one_in_use_is_found(wrong):
    (finding,) = check(SLUG, run(wrong))

    assert (finding.place, finding.tensors) == (ACTIVATION_LINE, ("head.weight",))
    assert f"along dimension {wrong.dim} of" in finding.message


@pytest.mark.parametrize(
    "fine",
    [
        softmax((32, 5), 1, (1, "nll_loss")),
        softmax((32, 5), 0),
        softmax((32, 9, 6), 2, (1, "product, right")),  # clusters that collect tokens
        softmax((32, 6, 9), 1, (2, "sum")),  # capsules
        softmax((9, 32, 1), 0, (0, "sum")),  # length first
        softmax((32, 32), 0, (1, "sum")),  # which of the two is the batch?
        softmax((32,), 0, (0, "sum")),  # weights of samples
        softmax((32, 4, 9), 1, (2, "product")),  # of no product: slots
        softmax((32, 5), 0, (1, "nll_loss"), (0, "sum")),  # used both ways
        softmax((32, 5), 0, (1, "nll_loss"), calls=2),
    ],
)
def test_weights_that_pool_along_another_dimension_are_left_alone(fine):
    assert check(SLUG, run(fine)) == []
