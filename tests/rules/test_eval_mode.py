"""A model that is trained in eval mode is reported if that is hardly meant."""

from dataclasses import replace

import pytest

from tests.rules.builders import check, evidence, line, module, optimizer, parameter
from whygrad.model import Severity

SLUG = "eval-mode"
ROOT = module("", 0, type="Net", training=False, taught=20, taught_in_eval=15, eval_at=line(40), made_at=line(5))
HELD = (parameter("head.weight", 0),)
DROPOUT = module("drop", 1, type="Dropout", training=False, has_modes=True)
NORM = module("norm", 2, type="BatchNorm1d", training=False, has_modes=True)


def run(*modules, root=ROOT, parameters=HELD):
    return check(SLUG, evidence(parameters, (optimizer(),), modules=(root, *modules)))


def test_a_model_that_is_left_in_eval_mode_is_a_warning_where_eval_was_called():
    (finding,) = run(DROPOUT, NORM)

    assert finding.severity is Severity.WARNING
    assert (finding.tensors, finding.place) == (("head.weight",), line(40))
    assert finding.message == (
        "`model` was in eval mode in 15 of 20 steps: its 2 layers with Dropout and BatchNorm did not train"
    )
    assert "`model.train()`" in finding.fix


def test_a_model_that_was_never_in_training_mode_is_a_warning_only_if_its_norms_have_no_statistics():
    never = replace(ROOT, taught_in_eval=20)

    assert [f.severity for f in run(NORM, root=never)] == [Severity.INFO]
    assert [f.severity for f in run(DROPOUT, root=never)] == [Severity.INFO]
    (finding,) = run(replace(NORM, fresh=True), root=never)
    assert finding.severity is Severity.WARNING
    assert "no batch has set the statistics of its 1 BatchNorm layer" in finding.message


@pytest.mark.parametrize(
    "root",
    [
        replace(ROOT, training=True),  # eval mode for attacks, training mode for steps
        replace(ROOT, taught_in_eval=4),
        replace(ROOT, taught=4, taught_in_eval=4),
        replace(ROOT, taught=100, taught_in_eval=30),
    ],
)
def test_a_model_that_is_mostly_in_training_mode_is_silent(root):
    assert run(DROPOUT, NORM, root=root) == []


def test_a_model_without_such_layers_or_without_an_optimizer_is_silent():
    assert run() == []
    assert run(replace(DROPOUT, has_modes=False)) == []
    assert run(replace(NORM, training=True)) == []
    assert run(NORM, parameters=(parameter("head.weight", 0, optimizers=()),)) == []
