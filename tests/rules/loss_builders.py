"""Calls of losses and softmaxes built by hand, for the tests of the rules about what is fed into the loss."""

from tests.rules.builders import evidence, line, optimizer, parameter
from whygrad.model import LossCall, Role, SoftmaxCall, Statistics, Total

LOSS_LINE, ACTIVATION_LINE = line(40), line(20)


def call(function, **fields):
    """Return three calls of a loss on [32, 5], fed by what parameter 0 makes, with numbers of raw scores."""
    usual = {
        "place": LOSS_LINE,
        "calls": 3,
        "shape": (32, 5),
        "target_shape": (32, 5),
        "result_shape": (32, 5),
        "parameters": (0,),
        "low": -2.0,
        "high": 3.0,
        "sum_low": -1.0,
        "sum_high": 4.0,
        "exp_sum_low": 5.0,
        "exp_sum_high": 9.0,
        "target_low": 0.0,
        "target_high": 1.0,
        "target_negative": 0.0,
        "target_above_one": 0.0,
        "target_below_minus_one": 0.0,
    }
    return LossCall(id=0, function=function, **{**usual, **fields})


def probabilities(function, **fields):
    """Return calls of a loss over classes that is fed with probabilities."""
    numbers = {"low": 0.01, "high": 0.9, "sum_low": 0.9999, "sum_high": 1.0001, "exp_sum_low": 6.0}
    return call(function, **{**numbers, "target_is_index": True, "target_shape": (32,), **fields})


def softmax(shape, dim, *used, **fields):
    """Return three calls of a softmax over `shape`, used up as (dimension, how) says."""
    usual = {
        "function": "softmax",
        "place": ACTIVATION_LINE,
        "calls": 3,
        "smallest": shape[dim],
        "largest": shape[dim],
        "batch": 32,
        "used_dims": tuple(axis for axis, _ in used),
        "used_by": tuple(how for _, how in used),
        "parameters": (0,),
        "nearest": (0,),
    }
    return SoftmaxCall(id=0, shape=shape, dim=dim, **{**usual, **fields})


def run(*calls, zero=False, events=(), **fields):
    """Return a run of one trained layer with these calls; its gradient is always zero, if asked for."""
    total = Total(Role.GRADIENT, 0, 10, 10 if zero else 0, statistics=Statistics(160, zeros=160 if zero else 0))
    return evidence(
        [parameter("head.weight", 0)],
        [optimizer()],
        losses=tuple(each for each in calls if isinstance(each, LossCall)),
        softmaxes=tuple(each for each in calls if isinstance(each, SoftmaxCall)),
        totals=(total,),
        events=tuple(events),
        **fields,
    )
