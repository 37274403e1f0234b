"""Loss scales that stay on the gradients, scalers that skip, sums where a mean was meant."""

import pytest

from tests.rules.builders import check, line, optimizer, parameter
from tests.rules.loop_builders import backward, clear, did, loop, loss_scale, sized, step
from whygrad.model import Severity

USUAL = [clear(), backward(marks=["scaled"]), did("unscale", 12), step()]
FORGOTTEN = [clear(), backward(marks=["scaled"]), step()]


def unscaled(happenings, count=10, **fields):
    return check("unscaled-step", loop((count, happenings), **fields))


def test_a_step_on_scaled_gradients_is_an_error_at_the_step():
    (finding,) = unscaled(FORGOTTEN, steps=sized(1.0, backward=1.0, gradient=65536.0))

    assert finding.severity is Severity.ERROR
    assert finding.place == line(12)
    assert finding.evidence["factor"] == 65536


@pytest.mark.parametrize(
    ("happenings", "fields"),
    [
        (USUAL, {}),
        ([clear(), backward(), step()], {}),
        ([backward(marks=["scaled"]), clear(), backward(), step()], {}),
        (FORGOTTEN, {"count": 2}),
        (FORGOTTEN, {"steps": sized(1.0, backward=1.0, gradient=1.0)}),  # divided by hand
    ],
)
def test_steps_on_plain_gradients_are_silent(happenings, fields):
    assert unscaled(happenings, **fields) == []


def skipping(*, made, left_out, last=0, **fields):
    skips = [(left_out, [*USUAL[:-1], did("skip", 13)], {"last_step": last})] if left_out else []
    found = loop((made, USUAL), *skips, optimizers=(optimizer(0, steps=made, skipped=left_out),), **fields)
    return check("scaler-skips-steps", found)


def test_a_scaler_that_skips_most_steps_is_an_error_at_its_step():
    (finding,) = skipping(made=2, left_out=28)

    assert (finding.severity, finding.place) == (Severity.ERROR, line(13))
    assert finding.message.startswith("The scaler skipped 28 of 30 steps of `optimizer`")


def test_what_only_skipped_steps_would_train_is_an_error():
    starved = parameter("kappa", 1, reached=9, gradient_steps=0)

    (finding,) = skipping(made=90, left_out=9, parameters=(parameter("weight", 0), starved))

    assert finding.tensors == ("kappa",)


def test_a_quarter_of_the_steps_to_the_end_is_a_warning():
    (finding,) = skipping(made=60, left_out=40, last=58)

    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize(
    "fields",
    [
        {"made": 22, "left_out": 2},  # the scale finds its size
        {"made": 1, "left_out": 3},  # too early to tell
        {"made": 30, "left_out": 0},
        {"made": 60, "left_out": 25, "last": 30},  # not to the end
        {"made": 90, "left_out": 9, "parameters": (parameter("unused", 1, reached=0, gradient_steps=0),)},
    ],
)
def test_a_scaler_that_finds_its_scale_is_silent(fields):
    assert skipping(**fields) == []


RISING, FALLING = [1.0 + n for n in range(10)], [1.0 / (1 + n) for n in range(10)]
WINDOW = [clear(), backward(times=8), step()]


def accumulated(scale, *, window=WINDOW, losses=RISING, kind="SGD", update=1.0):
    optimizers = (optimizer(0, type=kind),)
    found = loop((10, window), loss_scales=(scale,), optimizers=optimizers, steps=sized(update, losses=losses))
    return check("accumulation-scaling", found)


def test_a_sum_of_means_under_which_the_loss_rises_is_an_error_at_backward():
    (finding,) = accumulated(loss_scale())

    assert (finding.severity, finding.place) == (Severity.ERROR, line(11))
    assert "the sum of 8 mean losses" in finding.message


def test_a_loss_that_ends_as_nan_has_not_fallen():
    assert len(accumulated(loss_scale(), losses=[1.0] * 6 + [float("nan")] * 4)) == 1


@pytest.mark.parametrize(
    ("scale", "fields"),
    [
        (loss_scale(), {"losses": FALLING}),  # a sum that the learning rate fits
        (loss_scale(), {"update": 1e-3}),  # whatever makes the loss rise, it is not the size of the steps
        (loss_scale(factor=1 / 8), {}),
        (loss_scale(mean=False), {}),  # a sum over the batch: nothing to divide
        (loss_scale(), {"kind": "AdamW"}),
        (loss_scale(), {"window": [clear(), backward(), step()]}),
        (loss_scale(), {"losses": [1.0, 2.0]}),
        (loss_scale(factor=1 / 8, divided_by=8), {}),  # as Accelerate means it
    ],
)
def test_other_sums_are_silent(scale, fields):
    assert accumulated(scale, **fields) == []


def test_a_loss_that_accelerate_and_the_program_divide_is_a_warning():
    (finding,) = accumulated(loss_scale(factor=1 / 64, divided_by=8), losses=FALLING)

    assert finding.severity is Severity.WARNING
    assert "divided by 8 twice" in finding.message


@pytest.mark.parametrize(("kind", "severity"), [("SGD", Severity.WARNING), ("Adam", Severity.INFO)])
def test_a_division_without_accumulation_matters_to_plain_descent(kind, severity):
    usual = [clear(), backward(), step()]

    (finding,) = accumulated(loss_scale(factor=1 / 4, divided_by=4), window=usual, losses=FALLING, kind=kind)

    assert finding.severity is severity
