import pytest

from tests.rules.builders import check
from tests.rules.loss_builders import ACTIVATION_LINE, LOSS_LINE, call, probabilities, run

SLUG = "probabilities-to-nll"


@pytest.mark.parametrize("function", ["nll_loss", "kl_div", "ctc_loss"])
def test_probabilities_are_named_with_the_line_of_their_softmax(function):
    fed = probabilities(function, activation="softmax", activation_at=ACTIVATION_LINE)

    (finding,) = check(SLUG, run(fed))

    assert (finding.place, finding.also) == (ACTIVATION_LINE, (LOSS_LINE,))
    assert "probabilities, between 0.01 and 0.9" in finding.message


def test_raw_scores_are_named_with_the_line_of_the_loss():
    (finding,) = check(SLUG, run(call("nll_loss", target_is_index=True)))

    assert finding.place == LOSS_LINE
    assert "raw scores" in finding.message


@pytest.mark.parametrize(
    "fine",
    [
        call("nll_loss", low=-9.0, high=-0.01, sum_high=-5.0, exp_sum_low=0.999, exp_sum_high=1.001),
        call("nll_loss", low=-9.0, high=-0.01, sum_high=-5.0, exp_sum_low=1.1, exp_sum_high=3.0),  # log-sigmoids
        call("nll_loss", calls=2),
        call("nll_loss", shape=(32, 1)),
        call("cross_entropy"),
        probabilities("cross_entropy"),
    ],
)
def test_logarithms_and_other_losses_are_left_alone(fine):
    assert check(SLUG, run(fine)) == []
