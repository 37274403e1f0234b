"""The first step with NaN or Inf is found, and on which side of the loss it arose."""

import math
from dataclasses import replace

import pytest

from tests.rules.builders import check, line
from tests.rules.num_builders import NONE, OG, OUT, G, U, W, activation, layer, run
from whygrad.model import Event, Severity

SLUG = "nonfinite-gradient"
NAN, INF = math.nan, math.inf
NET = (layer("0"), activation("1", "Tanh"), layer("2"))


def from_step(first, value, before=1.0):
    return lambda step: value if step >= first else before


def broken(sizes, *, at=3, layers=NET, losses=None, **fields):
    """Return the findings of a run whose weights are NaN from the step after `at` on."""
    lost = {(U, "*"): from_step(at, NAN, 0.01), (W, "*"): from_step(at + 1, NAN)}
    losses = losses or [1.0] * (at + 1) + [NAN] * (11 - at)
    return check(SLUG, run(layers, {**lost, **sizes}, losses=losses, **fields))


def test_a_run_of_finite_numbers_is_silent():
    assert check(SLUG, run(NET)) == []


def test_a_loss_that_breaks_behind_finite_outputs_arose_between_them_and_the_loss():
    losses = [1.0] * 3 + [NAN] * 9
    (finding,) = broken({(G, "*"): from_step(3, NAN), (OG, "*"): from_step(3, NAN)}, losses=losses)

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("0.weight", "2.weight")
    assert finding.evidence["step"] == 3
    assert finding.evidence["arose_in"] == "forward"
    assert "the outputs of all modules were finite" in finding.message
    assert finding.place is None


def test_the_first_output_that_is_not_finite_is_named():
    losses = [1.0] * 3 + [INF] * 9
    sizes = {(OUT, "1"): from_step(3, INF), (OUT, "2"): from_step(3, NAN), (G, "*"): from_step(3, NAN)}
    (finding,) = broken(sizes, losses=losses)

    assert finding.evidence["module"] == "1"
    assert "`1` (Tanh)" in finding.message


def test_an_output_that_is_infinite_all_the_time_is_a_mask_and_no_birth():
    losses = [1.0] * 3 + [NAN] * 9
    (finding,) = broken({(OUT, "1"): INF, (G, "*"): from_step(3, NAN)}, losses=losses)

    assert finding.evidence["module"] == ""


def test_infinite_outputs_that_reach_no_gradient_are_silent():
    assert check(SLUG, run(NET, {(OUT, "1"): INF, (OG, "1"): NAN})) == []


def test_the_line_that_makes_a_ctc_loss_is_the_place_of_its_infinite_loss():
    layers = (*NET, layer("ctc", "CTCLoss", ()))
    losses = [1.0] * 3 + [INF] * 9
    (finding,) = broken({(OUT, "ctc"): from_step(3, INF), (G, "*"): from_step(3, NAN)}, layers=layers, losses=losses)

    assert finding.place == line(103)
    assert "zero_infinity" in finding.fix


def test_a_gradient_that_breaks_after_a_finite_loss_arose_in_backward_between_two_modules():
    (finding,) = broken(
        {(G, "0.weight"): from_step(3, NAN), (OG, "1"): from_step(3, NAN), (OG, "0"): from_step(3, NAN)}
    )

    assert finding.evidence["arose_in"] == "backward"
    assert "between the output of `2` and the output of `1`" in finding.message
    assert finding.message.startswith("the gradient of `0.weight` is NaN at step 3: the loss was finite (1)")


def test_a_gradient_that_breaks_behind_all_modules_arose_at_the_loss():
    (finding,) = broken({(G, "*"): from_step(3, INF), (OG, "*"): from_step(3, INF)})

    assert "is Inf at step 3" in finding.message
    assert "between the loss and the output of `2`" in finding.message


def test_a_parameter_that_breaks_although_its_modules_gradient_is_finite_gives_the_line_that_uses_it():
    layers = (layer("0"), layer("pool", "PowerPool", ("p",)), layer("2"))
    (finding,) = broken({(G, "pool.p"): from_step(3, NAN), (OG, "0"): from_step(3, NAN)}, layers=layers)

    assert finding.place == line(31)
    assert finding.tensors[0] == "pool.p"
    assert "in `pool`" in finding.message


def test_clipping_makes_every_gradient_nan_and_shows_no_line():
    (finding,) = broken({(G, "*"): from_step(3, NAN)})

    assert finding.place is None
    assert finding.message.endswith("so it arose in backward")


def test_finite_gradients_and_a_broken_update_arose_in_the_optimizer():
    (finding,) = broken({})

    assert finding.evidence["arose_in"] == "update"
    assert finding.message.startswith("the value of `0.weight` (+1) is NaN at step 3")


def test_weights_that_never_were_finite_arose_before_the_first_step():
    (finding,) = check(SLUG, run(NET, {("*", "*"): NAN, (W, "0.weight"): NAN, (G, "*"): NAN}, losses=[NAN] * 12))

    assert finding.evidence["arose_in"] == "initial"


def test_a_birth_at_a_step_that_was_not_recorded_is_called_unknown():
    late = {role: from_step(8, NAN) for role in (G, W, U)}
    sizes = {(role, "*"): value for role, value in late.items()}
    (finding,) = check(SLUG, run(NET, sizes, losses=[1.0] * 8 + [NAN] * 4))

    assert finding.evidence["arose_in"] == "unrecorded"
    assert "--trace-all" in finding.fix


def born(operation, side="forward", *, step=3, at=7, value="NaN", inputs=()):
    """Return the event of an operation that was seen to make NaN or Inf."""
    detail = {"side": side, "value": value, "inputs": list(inputs), "is_watched": True}
    return Event("nonfinite", step, step, 1, operation, None if at is None else line(at), detail)


def zeros(count):
    return {"dtype": "float32", "count": 8, "low": 0.0, "high": 2.0, "zeros": count}


def test_the_operation_that_was_seen_to_make_it_is_named_with_its_line():
    losses = [1.0] * 3 + [INF] * 9
    sizes = {(role, "*"): from_step(3, NAN) for role in (G, OG)}
    (finding,) = broken(sizes, losses=losses, events=(born("log", value="Inf", inputs=[zeros(2)]),))

    assert finding.place == line(7)
    assert finding.message.endswith("is NaN at step 3: `log` made it: 2 elements of its input are 0")
    assert finding.evidence["arose_in"] == "forward"


def test_an_operation_whose_derivative_broke_is_named_after_a_finite_loss():
    (finding,) = broken({(G, "*"): from_step(3, NAN)}, events=(born("sqrt", "backward"),))

    assert finding.place == line(7)
    assert (
        "the loss was finite (1), it arose in the backward of `sqrt`, whose derivative is infinite" in finding.message
    )


def test_values_that_came_in_broken_are_called_data():
    (finding,) = broken({(G, "*"): from_step(3, NAN)}, events=(born("linear", "data"),))

    assert "what `linear` was given held NaN already" in finding.message


def test_parameters_that_broke_unrecorded_belong_to_the_operation_of_the_step_before():
    events = (born("sqrt", "backward", step=5), Event("nonfinite-parameters", 6, 6, detail={"parameters": [1]}))
    (finding,) = check(SLUG, run(NET, losses=[1.0] * 6 + [NAN] * 6, events=events))

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("2.weight",)
    assert finding.place == line(7)
    assert finding.evidence["step"] == 5


def test_a_step_that_was_skipped_long_before_is_not_blamed():
    losses = [1.0] * 8 + [NAN] * 4
    sizes = {(role, "*"): from_step(8, NAN) for role in (G, W, U)}
    (finding,) = check(SLUG, run(NET, sizes, losses=losses, events=(born("mul", "backward", step=2),)))

    assert finding.place is None


def test_where_the_line_is_not_known_the_run_that_knows_it_is_named():
    (finding,) = broken({(G, "*"): from_step(3, NAN)}, events=(born("", at=None),))

    assert finding.place is None
    assert "an operation in forward made it" in finding.message
    assert "`whygrad run --trace-all`" in finding.fix


def test_what_became_nan_later_is_listed_behind_what_was_first():
    layers = (layer("0"), layer("pool", "PowerPool", ("p",)))
    (finding,) = broken({(G, "pool.p"): from_step(3, NAN)}, layers=layers)

    assert finding.tensors == ("pool.p", "0.weight")
    assert finding.evidence["parameters"] == 1
    assert finding.evidence["parameters_in_the_end"] == 2


@pytest.mark.parametrize("value", [NAN, INF])
def test_gradients_that_something_keeps_away_from_the_weights_are_silent(value):
    assert check(SLUG, run(NET, {(G, "*"): lambda step: value if step == 4 else 1.0})) == []


def test_a_broken_gradient_at_the_last_step_counts_where_nothing_shows_that_it_was_kept_away():
    sizes = {(G, "0.weight"): from_step(11, NAN), (U, "*"): lambda step: 0.01 if step < 11 else NONE}
    (finding,) = check(SLUG, run(NET, sizes))

    assert finding.tensors == ("0.weight",)


def test_a_mask_of_minus_infinity_that_the_optimizer_holds_is_silent():
    layers = (*NET, layer("attn", "Attention", ("mask",), requires_grad=False))

    assert check(SLUG, run(layers, {(W, "attn.mask"): -INF})) == []


def test_losses_that_break_while_all_parameters_stay_finite_are_a_warning():
    (finding,) = check(SLUG, run(NET, losses=[1.0] * 5 + [INF] + [1.0] * 6))

    assert finding.severity is Severity.WARNING
    assert "the loss was inf at 1 step, first at step 5" in finding.message


def test_where_the_loss_was_not_read_a_broken_output_shows_that_it_arose_in_forward():
    sizes = {(role, "*"): from_step(3, NAN) for role in (OUT, G, OG)}
    (finding,) = broken({**sizes, (OUT, "0"): 1.0}, losses=[None] * 12)

    assert finding.evidence["loss"] is None
    assert finding.evidence["arose_in"] == "forward"
    assert finding.evidence["module"] == "1"


def test_where_the_loss_was_not_read_nothing_is_said_about_it():
    sizes = {(role, "*"): from_step(3, NAN) for role in (G, OG)}
    (finding,) = broken(sizes, losses=[None] * 12)

    assert "finite" not in finding.message
    assert "it arose, between the loss and the output of `2`" in finding.message


def test_it_takes_no_steps_to_read_the_evidence_of_a_run_without_any():
    assert check(SLUG, replace(run(NET), steps=(), totals=())) == []
