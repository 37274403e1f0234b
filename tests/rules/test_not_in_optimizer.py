"""A parameter with gradients that no optimizer holds is a fault, unless it was left out on purpose."""

import pytest

from tests.rules.builders import check, evidence, line, module, optimizer, outsider, parameter, untouched, weights
from whygrad.model import Severity

SLUG = "not-in-optimizer"
HELD = parameter("head.weight", 0)
OPTIMIZER = optimizer()


def run(*parameters, optimizers=(OPTIMIZER,), held=(HELD,), **fields):
    return check(SLUG, evidence([*held, *parameters], optimizers, **fields))


def test_a_parameter_that_the_optimizer_of_its_model_lacks_is_an_error_at_the_line_that_makes_the_optimizer():
    (finding,) = run(outsider("queries", 1, made_at=line(4)))

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("queries",)
    assert finding.place == line(20)
    assert finding.also == (line(4),)
    assert finding.message == (
        "`queries` got a gradient in 10 of 10 backward passes, but no optimizer holds it: `optimizer` holds the others"
    )
    assert finding.evidence["trained_siblings"] == 1


def test_a_model_that_no_optimizer_holds_is_a_warning():
    (finding,) = run(outsider("loss.scale", 1, root="loss"), outsider("loss.weight", 2, root="loss"))

    assert finding.severity is Severity.WARNING
    assert finding.tensors == ("loss.scale", "loss.weight")
    assert "holds other tensors only" in finding.message


def test_models_are_told_apart():
    found = run(outsider("a.weight", 1, root="a"), outsider("b.weight", 2, root="b"))

    assert [finding.tensors for finding in found] == [("a.weight",), ("b.weight",)]


def test_the_optimizer_named_is_the_one_that_trains_most_of_the_model():
    two = (optimizer(0, name="one", made_at=line(20), steps=90), optimizer(1, name="other", made_at=line(21)))
    held = [parameter(f"d.{i}.weight", i + 2, optimizers=(1,)) for i in range(2)]

    (finding,) = run(outsider("d.9.weight", 9), *held, optimizers=two)

    assert finding.place == line(21)
    assert "`other`" in finding.fix


def test_a_bare_parameter_outside_of_any_module_is_an_error():
    (finding,) = run(outsider("temperature", 1, root="", registered=False, held_in="variable"))

    assert finding.severity is Severity.ERROR


def test_a_plain_tensor_outside_of_any_module_is_an_input():
    assert run(outsider("points", 1, root="", registered=False, held_in="variable", made_at=None)) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"optimizers": (7,)},  # another optimizer holds it, whatever became of that
        {"reached": 2},  # once or twice, as in a look at gradients
        {"requires_grad": False},
        {"changed_outside": 4},  # updated by hand
        {"registered": False, "held_in": "list"},  # another rule
    ],
)
def test_near_misses_are_silent(fields):
    assert run(outsider("queries", 1, **fields)) == []


def test_what_is_updated_by_hand_through_data_is_silent():
    assert run(outsider("queries", 1), matrices=weights([0.5, 0.5], [0.5, 0.7])) == []


def test_gradients_count_where_no_graph_was_walked():
    assert len(run(outsider("queries", 1, walked=0, reached=0, gradient_steps=10))) == 1
    assert run(outsider("queries", 1, walked=0, reached=0, gradient_steps=2)) == []


@pytest.mark.parametrize("optimizers", [(), (optimizer(steps=0),), (optimizer(steps=2),)])
def test_a_program_in_which_no_optimizer_works_is_silent(optimizers):
    assert run(outsider("queries", 1), optimizers=optimizers) == []


def test_a_part_in_eval_mode_beside_one_that_trains_is_an_info():
    modes = (module("head", 0), module("body", 1, training=False))

    (finding,) = run(outsider("body.weight", 1, order=1), held=[parameter("head.weight", 0, order=0)], modules=modes)

    assert finding.severity is Severity.INFO


def test_eval_mode_says_nothing_where_all_of_the_program_runs_in_it():
    modes = (module("head", 0, training=False), module("body", 1, training=False))

    (finding,) = run(outsider("body.weight", 1, order=1), held=[parameter("head.weight", 0, order=0)], modules=modes)

    assert finding.severity is Severity.ERROR


def test_a_model_through_which_an_input_is_fitted_is_an_info():
    image = parameter("image", 0, root="", registered=False, held_in="variable")

    (finding,) = run(outsider("net.weight", 1, root="net"), held=[image])

    assert finding.severity is Severity.INFO


def test_a_loaded_branch_beside_a_head_that_is_trained_is_an_info():
    body = [outsider(f"body.{i}.weight", i, loaded=True) for i in (1, 2)]

    (finding,) = run(*body)

    assert finding.severity is Severity.INFO


def test_a_loaded_scorer_of_another_model_is_an_info():
    (finding,) = run(outsider("vgg.weight", 1, root="vgg", loaded=True))

    assert finding.severity is Severity.INFO


def test_a_loaded_parameter_that_its_siblings_in_the_same_branch_left_behind_is_an_error():
    decoder = [
        parameter(f"decoder.{name}.weight", number, loaded=True) for number, name in enumerate(("key", "value"), 1)
    ]

    (finding,) = run(outsider("decoder.queries", 9, loaded=True), *decoder)

    assert finding.severity is Severity.ERROR


def test_most_of_a_loaded_model_beside_a_few_tuned_biases_is_an_info():
    layers = [outsider(f"layers.{i}.weight", i, loaded=True) for i in (1, 2)]
    biases = [parameter(f"layers.{i}.bias", i + 10, loaded=True, shape=(4,)) for i in (1, 2)]

    (finding,) = run(*layers, *biases, held=())

    assert finding.severity is Severity.INFO


def test_a_wrapper_with_one_child_does_not_hide_the_branches():
    wrapped = [parameter("net.head.weight", 0), outsider("net.body.weight", 1, loaded=True, shape=(2, 2))]

    (finding,) = run(*wrapped, held=())

    assert finding.severity is Severity.INFO


def test_a_model_is_an_error_where_the_optimizer_holds_nothing_that_gets_a_gradient():
    wrong = untouched("other.weight", 0, root="other")

    (finding,) = run(outsider("model.weight", 1), held=[wrong])

    assert finding.severity is Severity.ERROR
    assert finding.message.endswith("`optimizer` holds only parameters that got none")


def test_what_a_model_has_replaced_is_no_sibling():
    (finding,) = run(outsider("layer.weight", 1), held=[parameter("layer.weight", 0, stale=True)])

    assert finding.severity is Severity.ERROR
    assert finding.evidence["trained_siblings"] == 0
    assert finding.message.endswith("holds what the model has replaced")
