from tests.rules.builders import check
from tests.rules.loss_builders import ACTIVATION_LINE, LOSS_LINE, call, run, softmax

SLUG = "single-logit-softmax"
OF_ONE = softmax((32, 10, 1), 2, (1, "sum"))


def test_a_softmax_over_one_number_is_found_with_the_layer_it_silences():
    (finding,) = check(SLUG, run(OF_ONE, zero=True))

    assert (finding.place, finding.tensors) == (ACTIVATION_LINE, ("head.weight",))
    assert "dim=1 of [32, 10, 1]" in finding.fix


def test_cross_entropy_over_one_class_is_found():
    one_class = call("cross_entropy", shape=(32, 1), target_is_index=True)

    assert [finding.place for finding in check(SLUG, run(one_class, zero=True))] == [LOSS_LINE]


def test_a_layer_that_gets_gradients_is_left_alone():
    assert check(SLUG, run(OF_ONE)) == []


def test_a_sequence_that_grows_is_left_alone():
    assert check(SLUG, run(softmax((32, 1), 1, (1, "sum"), largest=4), zero=True)) == []
