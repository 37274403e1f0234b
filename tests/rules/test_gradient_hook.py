"""A hook behind which nothing is left is reported; one that masks, halves or counts is not."""

import pytest

from tests.rules.builders import event, line
from tests.rules.num_builders import NONE, G, U, W, layer, run, sized
from whygrad.rules import all_rules

SLUG = "gradient-hook"
LAYERS = [layer("body"), layer("head")]


def hooks(*events, sizes, layers=LAYERS, **fields):
    return list(all_rules()[SLUG].check(run(layers, sizes, events=events, **fields)))


def test_a_parameter_whose_hook_leaves_zeros_is_an_error_at_the_line_that_sets_it():
    (finding,) = hooks(event("gradient_hook", subject="0", place=line(9)), sizes={(G, "body.weight"): 0})

    assert (finding.tensors, finding.place) == (("body.weight",), line(9))
    assert "a hook on `body.weight` leaves it a gradient of exactly zero at all 12 recorded steps" in finding.message


def test_a_hook_that_clears_grad_leaves_none_at_all():
    cleared = [layer("body", gradient_steps=0), layer("head")]

    (finding,) = hooks(
        event("gradient_hook", subject="0", place=line(9)), layers=cleared, sizes={(G, "body.weight"): NONE}
    )

    assert "no gradient at any of 12 steps" in finding.message


@pytest.mark.parametrize("size", [1.0, 1e-8])
def test_a_hook_that_leaves_a_gradient_is_silent_if_it_gets_somewhere(size):
    assert hooks(event("gradient_hook", subject="0", place=line(9)), sizes={(G, "body.weight"): size}) == []


def test_a_gradient_next_to_nothing_that_gets_nowhere_is_reported():
    sizes = {(G, "*"): 1e-9, (U, "*"): 1e-10, (W, "*"): 1.0}

    (finding,) = hooks(event("gradient_hook", subject="0", place=line(9)), sizes=sizes)

    assert "a gradient of at most 1e-09" in finding.message


def test_what_lies_behind_a_hook_on_an_intermediate_is_reported_if_all_of_it_is_zero():
    hook = event("tensor_hook", place=line(9), parameters=[0])

    (finding,) = hooks(hook, sizes={(G, "body.weight"): 0})

    assert finding.tensors == ("body.weight",)
    assert hooks(hook, sizes={}) == []
    assert hooks(hook, sizes={(G, "*"): 0}) == []  # the loss gives nothing to anybody


def test_a_module_hook_is_held_for_what_is_in_front_of_the_module():
    hook = event("module_hook", subject="head", place=line(9), root="model", before=False)

    (finding,) = hooks(hook, sizes={(G, "body.weight"): 0})

    assert finding.tensors == ("body.weight",)
    assert hooks(hook, sizes={(G, "head.weight"): 0}) == []


def test_zeros_without_a_hook_are_silent():
    assert hooks(sizes={(G, "body.weight"): sized(0)}) == []
