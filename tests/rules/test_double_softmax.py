import pytest

from tests.rules.builders import check, event
from tests.rules.loss_builders import ACTIVATION_LINE, LOSS_LINE, call, probabilities, run, softmax

SLUG = "double-softmax"
BY_SOFTMAX = {"activation": "softmax", "activation_at": ACTIVATION_LINE}
BY_SIGMOID = {"activation": "sigmoid", "activation_at": ACTIVATION_LINE, "low": 0.1, "high": 0.8}


def test_a_softmax_in_front_of_cross_entropy_is_named_with_its_line():
    (finding,) = check(SLUG, run(probabilities("cross_entropy", **BY_SOFTMAX)))

    assert (finding.place, finding.also, finding.tensors) == (ACTIVATION_LINE, (LOSS_LINE,), ("head.weight",))
    assert "cannot fall below 0.905" in finding.message  # log(e + 4) - 1


def test_probabilities_from_further_away_are_told_by_their_sums():
    far = probabilities("cross_entropy", softmax_at=ACTIVATION_LINE)

    assert [finding.place for finding in check(SLUG, run(far))] == [ACTIVATION_LINE]


def test_a_sigmoid_in_front_of_a_loss_that_applies_it_is_found():
    assert len(check(SLUG, run(call("binary_cross_entropy_with_logits", **BY_SIGMOID)))) == 1


def test_a_sigmoid_of_a_sigmoid_is_found():
    twice = call("binary_cross_entropy", **BY_SIGMOID, inner_activation="sigmoid", inner_activation_at=ACTIVATION_LINE)

    assert len(check(SLUG, run(twice))) == 1


def test_a_log_softmax_of_a_softmax_is_found():
    twice = softmax((32, 5), 1, function="log_softmax", inner_activation="softmax", inner_activation_at=ACTIVATION_LINE)

    assert len(check(SLUG, run(twice))) == 1


def test_probabilities_that_a_distribution_takes_for_logits_are_found():
    taken = event("softmax_as_logits", place=ACTIVATION_LINE, subject="Categorical", count=3, parameters=[0])

    assert [finding.place for finding in check(SLUG, run(events=[taken]))] == [ACTIVATION_LINE]


@pytest.mark.parametrize(
    "fine",
    [
        call("cross_entropy"),
        call("cross_entropy", activation="log_softmax", softmax_at=ACTIVATION_LINE, high=0.0),
        call("cross_entropy", softmax_at=ACTIVATION_LINE),  # an attention inside the model
        probabilities("cross_entropy", **BY_SOFTMAX, calls=2),
        probabilities("cross_entropy", **{**BY_SOFTMAX, "high": 7.0}),
        call("binary_cross_entropy", **BY_SIGMOID),
        call("mse_loss", **BY_SIGMOID),
        probabilities("nll_loss", **BY_SOFTMAX),  # another rule's
        softmax((32, 5), 1, inner_activation="softmax"),
    ],
)
def test_what_takes_its_input_as_it_is_meant_is_left_alone(fine):
    assert check(SLUG, run(fine)) == []
