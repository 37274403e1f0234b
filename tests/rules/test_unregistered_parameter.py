"""What a module hides in a list, dict or attribute is reported if it was meant to learn and stays as it was."""

import pytest

from tests.rules.builders import check, evidence, info, line, module, optimizer, outsider, parameter, raised, weights
from whygrad.model import Severity

SLUG = "unregistered-parameter"
OWNER = module("", 0, type="Model")
HIDDEN_LAYER = module("", 1, root="Linear", type="Linear")
HEAD = parameter("head.weight", 0)
OPTIMIZER = optimizer()


def hidden(name, id, **fields):
    fields = {"attribute": name.split(".")[0], "held_in": "list", "assigned_at": line(7), "order": 1, **fields}
    return outsider(name, id, **{"module": "", "registered": False, **fields})


def run(*parameters, modules=(OWNER, HIDDEN_LAYER), optimizers=(OPTIMIZER,), **fields):
    return check(SLUG, evidence([HEAD, *parameters], optimizers, modules=modules, **fields))


def test_layers_in_a_list_are_one_error_at_the_line_that_hides_them():
    (finding,) = run(hidden("blocks.0.weight", 1), hidden("blocks.1.weight", 2))

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("blocks.0.weight", "blocks.1.weight")
    assert finding.place == line(7)
    assert "got a gradient in 10 of 10 backward passes, but `blocks` is a plain list" in finding.message
    assert finding.evidence == {"reached": 10, "backward_passes": 10, "held_in": "list", "elements": 32}


def test_the_place_is_where_it_was_made_if_nothing_better_is_known():
    (finding,) = run(hidden("blocks.0.weight", 1, assigned_at=None, made_at=line(3)))

    assert finding.place == line(3)


@pytest.mark.parametrize(
    ("name", "fields", "what"),
    [
        ("blocks.0.weight", {"held_in": "list"}, "an nn.ModuleList,"),
        ("blocks.a.weight", {"held_in": "dict"}, "an nn.ModuleDict,"),
        ("scales.0", {"held_in": "list", "order": 0}, "an nn.ParameterList,"),
        ("scales.a", {"held_in": "dict", "order": 0}, "an nn.ParameterDict,"),
        ("scales.a.gain", {"held_in": "dict", "order": 0}, "an nn.ModuleDict of nn.ParameterDict,"),
        ("scales.a.0", {"held_in": "dict", "order": 0}, "an nn.ModuleDict of nn.ParameterList,"),
        ("scale", {"held_in": "attribute", "order": 0}, "an nn.Parameter"),
        ("box.layer.weight", {"held_in": "attribute"}, "derive from nn.Module"),
        ("blocks.0.0", {"order": None}, "an nn.ModuleList, or an nn.ParameterList if it holds bare parameters,"),
    ],
)
def test_the_fix_names_the_class_to_use(name, fields, what):
    (finding,) = run(hidden(name, 1, **fields))

    assert what in finding.fix
    assert f"`self.{name.split('.')[0]}`" in finding.fix


def test_a_list_inside_a_list_of_the_same_name_is_understood():
    inner = module("layers.0", 0, type="Inner")

    (finding,) = run(hidden("layers.0.layers.1", 1, module="layers.0", attribute="layers", order=0), modules=(inner,))

    assert finding.fix.startswith("Make `self.layers` an nn.ParameterList,")


@pytest.mark.parametrize(
    "fields",
    [
        {"optimizers": (0,)},  # the program collects them by hand
        {"reached": 0, "gradient_steps": 0},  # a teacher that is kept out of sight, called under no_grad
        {"reached": 1, "gradient_steps": 1},  # made anew in each forward
        {"requires_grad": False},
        {"registered": True, "held_in": ""},
        {"held_in": "variable"},
        {"held_in": "optimizer"},
        {"changed_outside": 3},
    ],
)
def test_near_misses_are_silent(fields):
    assert run(hidden("blocks.0.weight", 1, **fields)) == []


def test_what_is_updated_by_hand_through_data_is_silent():
    assert run(hidden("blocks.0.weight", 1), matrices=weights([0.5, 0.5], [0.5, 0.7])) == []


def test_a_program_that_only_looks_at_gradients_is_silent():
    assert run(hidden("blocks.0.weight", 1), optimizers=()) == []


def test_a_loop_without_optimizer_that_updates_what_is_registered_is_reported():
    moving = [outsider("head.weight", 0, changed_outside=9), hidden("blocks.0.weight", 1)]

    (finding,) = check(SLUG, evidence(moving, modules=(OWNER, HIDDEN_LAYER)))

    assert finding.severity is Severity.ERROR


@pytest.mark.parametrize(
    ("fields", "modules"),
    [
        ({"loaded": True}, (OWNER, HIDDEN_LAYER)),
        ({}, (OWNER, module("", 1, root="Vgg", type="Vgg", training=False))),
    ],
)
def test_a_finished_network_that_is_hidden_on_purpose_is_an_info(fields, modules):
    (finding,) = run(hidden("scorer.0.weight", 1, **fields), modules=modules)

    assert finding.severity is Severity.INFO


def test_a_tensor_of_a_model_in_eval_mode_is_not_hidden_on_purpose():
    (finding,) = run(hidden("scales.0", 1, order=0), modules=(module("", 0, type="Model", training=False),))

    assert finding.severity is Severity.ERROR


def test_a_plain_tensor_is_reported_unless_derivatives_are_taken_somewhere():
    points = hidden("points", 1, held_in="attribute", made_at=None, order=0)

    assert [f.tensors for f in run(points)] == [("points",)]
    assert run(points, info=info(grad_calls=10)) == []
    assert len(run(hidden("weight", 1, held_in="attribute", order=0), info=info(grad_calls=10))) == 1


def test_a_model_of_which_nothing_is_registered_stops_the_optimizer_and_is_reported():
    lonely = hidden("blocks.0.weight", 0, reached=0, walked=0, gradient_steps=0)
    stopped = info(raised=raised("", "ValueError", "empty-parameter-list"), backwards=0)

    (finding,) = check(SLUG, evidence([lonely], info=stopped, modules=(OWNER,)))

    assert finding.severity is Severity.ERROR
    assert "is in the model, but `blocks` is a plain list" in finding.message


def test_an_empty_optimizer_is_not_explained_by_a_model_of_which_something_is_registered():
    given = [outsider("head.weight", 0, reached=0), hidden("blocks.0.weight", 1, reached=0, walked=0, gradient_steps=0)]
    stopped = info(raised=raised("", "ValueError", "empty-parameter-list"), backwards=0)

    assert check(SLUG, evidence(given, info=stopped, modules=(OWNER,))) == []
