"""What half precision loses: updates, the optimizer's eps, gradients. What it only rounds is no finding."""

import math
from dataclasses import replace

import pytest

from tests.rules.builders import line, optimizer
from tests.rules.num_builders import OG, G, U, W, layer, mixed, run, sized
from whygrad.model import Group, Severity
from whygrad.rules import all_rules

STEPS = 24
MADE = line(20)


OPTIMIZER = optimizer(steps=STEPS)


def judged(slug, layers, sizes, *, made=OPTIMIZER, steps=STEPS, outputs=None, **fields):
    evidence = run(layers, sizes, steps=steps, optimizers=(made,), **fields)
    if outputs is not None:
        evidence = replace(evidence, outputs=tuple(replace(output, dtype=outputs) for output in evidence.outputs))
    return list(all_rules()[slug].check(evidence))


# -- update-rounded-away -----------------------------------------------------------------------------------------------


def stuck(name, **fields):
    return layer(name, **{"dtype": "bfloat16", "unmoved": 1.0, **fields})


def test_weights_that_no_update_changes_are_an_error_where_the_optimizer_is_made():
    (finding,) = judged(
        "update-rounded-away", [stuck("norm"), layer("head", dtype="bfloat16", unmoved=0.0)], {(U, "*"): 0}
    )

    assert finding.severity is Severity.ERROR
    assert (finding.tensors, finding.place) == (("norm.weight",), MADE)
    assert "100% of the elements of `norm.weight` did not change in 24 steps: in bfloat16" in finding.message
    assert finding.evidence["smallest_update_that_counts"] == 2.0**-9


def test_weights_of_which_nearly_all_elements_stand_still_are_a_warning():
    (finding,) = judged("update-rounded-away", [stuck("norm", unmoved=0.95)], {(U, "*"): mixed(15)})

    assert finding.severity is Severity.WARNING
    assert "93.8% of the elements" in finding.message


@pytest.mark.parametrize(
    ("fields", "sizes"),
    [
        ({"dtype": "float32"}, {}),
        ({"unmoved": 0.5}, {}),  # what is rounded away is carried on
        ({"unmoved": None}, {}),
        ({}, {(U, "*"): mixed(8)}),
        ({}, {(G, "*"): 0}),  # there is nothing to add
        ({}, {(G, "*"): math.nan}),
    ],
)
def test_weights_that_move_or_have_no_reason_to_are_silent(fields, sizes):
    assert judged("update-rounded-away", [stuck("norm", **fields)], {(U, "*"): 0, **sizes}) == []


def test_few_steps_a_rate_of_zero_and_an_optimizer_that_may_compensate_are_silent():
    layers = [stuck("norm"), layer("head", dtype="bfloat16", unmoved=0.4)]
    assert judged("update-rounded-away", layers, {(U, "*"): 0}, steps=10) == []
    assert judged("update-rounded-away", layers, {(U, "*"): 0}, made=optimizer(steps=24, zero_rate_steps=20)) == []
    assert judged("update-rounded-away", layers, {(U, "*"): 0}, made=optimizer(steps=24, type="KahanAdamW")) == []


# -- optimizer-eps-underflow -------------------------------------------------------------------------------------------

HALF = [layer("body", dtype="float16")]
TINY = Group(0, 0, 0, (0,), eps=1e-8)


def test_an_eps_that_is_zero_in_float16_is_an_error_if_weights_broke_under_finite_gradients():
    (finding,) = judged("optimizer-eps-underflow", HALF, {(U, "*"): math.nan}, groups=(TINY,))

    assert finding.severity is Severity.ERROR
    assert (finding.tensors, finding.place) == (("body.weight",), MADE)
    assert "eps=1e-08 of `optimizer` is 0 in float16, and `body.weight` became NaN or Inf at step 0" in finding.message


@pytest.mark.parametrize(
    ("layers", "sizes", "group"),
    [
        (HALF, {}, TINY),  # large gradients
        (HALF, {(U, "*"): math.nan}, replace(TINY, eps=1e-4)),
        (HALF, {(U, "*"): math.nan}, replace(TINY, eps=math.nan)),  # SGD
        (HALF, {(U, "*"): math.nan, (G, "*"): math.inf}, TINY),  # the gradient broke first
        ([layer("body", dtype="bfloat16")], {(U, "*"): math.nan}, TINY),
    ],
)
def test_an_eps_that_does_no_harm_is_silent(layers, sizes, group):
    assert judged("optimizer-eps-underflow", layers, sizes, groups=(group,)) == []


# -- fp16-underflow ----------------------------------------------------------------------------------------------------


def test_gradients_that_float16_cannot_hold_are_an_error():
    (finding,) = judged("fp16-underflow", [*HALF, layer("head", dtype="float16")], {(G, "*"): mixed(12, 1e-6)})

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("body.weight", "head.weight")
    assert finding.place == MADE
    assert "75% of the gradient of `body.weight` (+1) is 0 in float16: what is left is at most 1e-06" in finding.message


def test_under_autocast_the_gradients_of_outputs_tell():
    sizes = {(OG, "*"): mixed(12, 1e-6), (G, "*"): 1e-5}

    assert len(judged("fp16-underflow", [layer("body")], sizes, outputs="float16")) == 1
    assert judged("fp16-underflow", [layer("body")], sizes, outputs="bfloat16") == []


@pytest.mark.parametrize("gradient", [mixed(12, 1e-2), mixed(4, 1e-6), sized(0), sized(1e-6), sized(math.nan)])
def test_masks_small_gradients_and_plain_zeros_are_silent(gradient):
    assert judged("fp16-underflow", HALF, {(G, "*"): gradient}) == []


def test_a_layer_of_zeros_in_front_of_faint_gradients_is_part_of_it():
    sizes = {(G, "body.weight"): 0, (G, "head.weight"): mixed(4, 1e-6), (W, "*"): 1.0}

    (finding,) = judged("fp16-underflow", [*HALF, layer("head", dtype="float16")], sizes)

    assert finding.tensors == ("body.weight",)
