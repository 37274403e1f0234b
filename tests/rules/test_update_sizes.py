"""Updates that lead nowhere, overwrite the weights, or are mere decay are reported; the spread of health is not."""

from dataclasses import replace

import pytest

from tests.rules.builders import info, line, optimizer, raised
from tests.rules.num_builders import G, U, W, layer, run
from whygrad.model import Group, Severity
from whygrad.rules import all_rules

LAYERS = [layer("body"), layer("head", attributes=("weight", "bias"))]
FLAT = [0.69, 0.7] * 15
STEPS = len(FLAT)
FALLING = [1.0 - 0.03 * step for step in range(STEPS)]
RISING = [1.0 + 0.03 * step for step in range(STEPS)]
MADE = line(20)


def group(**fields):
    settings = {"parameters": (0, 1, 2), "learning_rate": 0.1, "highest_learning_rate": 0.1, "steps": STEPS}
    return Group(0, 0, 0, **{**settings, **fields})


GROUPS = (group(),)
OPTIMIZER = optimizer(steps=STEPS)


def judged(slug, sizes, *, losses=FLAT, groups=GROUPS, layers=LAYERS, made=OPTIMIZER, **fields):
    given = {"groups": groups, "optimizers": (made,), **fields}
    return list(all_rules()[slug].check(run(layers, sizes, steps=STEPS, losses=losses, **given)))


# -- update-too-small ------------------------------------------------------------------------------------------------

STILL = {(U, "*"): 1e-5, (W, "*"): 1.0}
SLOW = {(U, "*"): 2e-3, (W, "*"): 1.0}
WARMING = group(rises=STEPS - 1, highest_learning_rate=0.001, base_learning_rate=0.1)


def test_steps_that_take_no_weight_anywhere_are_a_warning_where_the_optimizer_is_made():
    (finding,) = judged("update-too-small", STILL)

    assert finding.severity is Severity.WARNING
    assert set(finding.tensors) == {"body.weight", "head.weight", "head.bias"}
    assert finding.place == MADE
    assert "30 steps of `optimizer` take no weight further than 0.03% of its size" in finding.message
    assert "its rate is 0.1" in finding.message


def test_a_run_that_lies_in_the_warm_up_is_placed_where_the_scheduler_is_made():
    made = optimizer(steps=STEPS, scheduler="LambdaLR", scheduler_made_at=line(21))

    (finding,) = judged("update-too-small", SLOW, groups=(WARMING,), made=made)

    assert finding.place == line(21)
    assert "was still rising, at 0.001" in finding.message
    assert judged("update-too-small", SLOW) == []  # the same way without a warm-up


@pytest.mark.parametrize(
    "fields",
    [
        {"losses": FALLING},
        {"losses": [None] * STEPS},
        {"info": info(raised=raised("killed"), steps=STEPS)},
        {"info": info(ended=False, steps=STEPS)},
        {"layers": [layer("body", loaded=True)]},  # fine-tuned
        {"layers": [layer("body", optimizers=(0, 1))], "optimizers": (optimizer(), optimizer(1))},  # in two phases
        {"made": optimizer(steps=STEPS, zero_rate_steps=20)},  # another rule's
        {"made": optimizer(steps=8)},
    ],
)
def test_short_ways_that_may_be_meant_are_silent(fields):
    assert judged("update-too-small", STILL, **fields) == []


def test_a_single_weight_that_goes_its_way_is_enough():
    assert judged("update-too-small", {**STILL, (U, "head.weight"): 1e-2}) == []


def test_a_group_that_stands_still_beside_one_that_moves_is_a_warning_though_the_loss_falls():
    two = (group(parameters=(0,), highest_learning_rate=1e-9), replace(group(parameters=(1, 2)), id=1, position=1))
    sizes = {(U, "*"): 1e-2, (W, "*"): 1.0, (U, "body.weight"): 1e-8}

    (finding,) = judged("update-too-small", sizes, losses=FALLING, groups=two)

    assert finding.tensors == ("body.weight",)
    assert "at rate 1e-09, and others 1e+06 times as far" in finding.message
    assert judged("update-too-small", {**sizes, (U, "body.weight"): 1e-4}, losses=FALLING, groups=two) == []


def test_noise_does_not_hide_a_loss_that_falls():
    noisy = [value + 0.01 * (-1) ** step for step, value in enumerate(FALLING)]

    assert judged("update-too-small", STILL, losses=noisy) == []


# -- update-too-large ------------------------------------------------------------------------------------------------

LARGE = {(U, "*"): 0.8, (W, "*"): 1.0}


def test_first_steps_as_large_as_the_weights_are_a_warning_if_the_loss_does_not_recover():
    (finding,) = judged("update-too-large", LARGE, losses=RISING)

    assert finding.severity is Severity.WARNING
    assert finding.place == MADE
    assert "the first updates of `body.weight` (+1) are up to 0.8 times its size, at rate 0.1" in finding.message
    assert finding.evidence["loss_first"] == 1.0


@pytest.mark.parametrize(
    ("sizes", "losses"),
    [
        (LARGE, FALLING),
        ({**LARGE, (U, "*"): 0.3}, RISING),
        ({**LARGE, (U, "*"): lambda step: 0.8 if step < 4 else 0.001}, RISING),  # a start that is over
        ({**LARGE, (U, "*"): lambda step: 9.0 if step < 4 else 0.001}, FALLING),
        ({**LARGE, (U, "head.weight"): 0.1}, RISING),  # half of the weights
        ({(U, "*"): 1e-4, (W, "*"): 1e-4}, RISING),  # a start near zero
    ],
)
def test_large_updates_that_are_no_fault_are_silent(sizes, losses):
    assert judged("update-too-large", sizes, losses=losses) == []


# -- decay-dominates -------------------------------------------------------------------------------------------------


def fading(step):
    return 0.9**step


COUPLED = group(weight_decay=0.05)
DECOUPLED = group(weight_decay=1.0, decoupled=True)


def test_decay_that_pulls_harder_than_the_gradient_until_nothing_is_left_is_an_error():
    (finding,) = judged("decay-dominates", {(G, "*"): 1e-5, (W, "*"): fading}, groups=(COUPLED,))

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("body.weight", "head.weight", "head.bias")
    assert finding.place == MADE
    assert "weight decay 0.05 pulls `body.weight` (+2)" in finding.message
    assert finding.evidence["size_left"] < 0.1


def test_decoupled_decay_is_measured_against_the_update():
    sizes = {(W, "*"): fading, (U, "*"): lambda step: 0.11 * fading(step)}

    (finding,) = judged("decay-dominates", sizes, groups=(DECOUPLED,))

    assert "weight decay 1 is 90.9% of the update of `body.weight` (+2)" in finding.message
    assert judged("decay-dominates", {**sizes, (U, "*"): fading}, groups=(DECOUPLED,)) == []


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ({(G, "*"): 1e-5, (W, "*"): 1.0}, (COUPLED,)),  # it pulls, and the weights hold
        ({(G, "*"): 1.0, (W, "*"): fading}, (COUPLED,)),  # the loss wants them small
        ({(G, "*"): 1e-5, (W, "*"): fading}, (group(),)),  # no decay at all
    ],
)
def test_decay_that_does_no_harm_is_silent(sizes, groups):
    assert judged("decay-dominates", sizes, groups=groups) == []


def test_one_weight_of_several_is_a_warning():
    sizes = {(G, "*"): 1.0, (W, "*"): 1.0, (G, "body.weight"): 1e-5, (W, "body.weight"): fading}

    (finding,) = judged("decay-dominates", sizes, groups=(COUPLED,), layers=[layer("body"), layer("b"), layer("c")])

    assert (finding.severity, finding.tensors) == (Severity.WARNING, ("body.weight",))
