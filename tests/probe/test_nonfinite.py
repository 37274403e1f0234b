"""The first NaN or Inf is named with its line, though the step in which it arises may hardly be watched."""

import runpy
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.probe.watched import watched
from tests.rules.builders import check
from tests.rules.pages import marked_lines
from whygrad.probe.session import Session, SessionOptions
from whygrad.runfile.reader import read_evidence

SLUG = "nonfinite-gradient"
PROGRAMS = Path(__file__).parents[1] / "rules" / "programs"
# Told otherwise than by its line where only one step in fifty is recorded: a function's own backward is not looked
# into, and where missing values came from is not known.
ELSEWHERE = {"nan_custom_function": None, "nan_missing_values_in_a_table": 14}
FAULTY = sorted(path.stem for path in PROGRAMS.glob("nan_*.py") if "quiet" not in path.stem)
QUIET = sorted(path.stem for path in PROGRAMS.glob("nan_quiet_*.py"))


def lightly(program, tmp_path):
    """Return what the rule says of a program of which one step in fifty is recorded."""
    path = str(PROGRAMS / f"{program}.py")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return check(SLUG, watched(tmp_path, lambda: runpy.run_path(path), every=50, script=path))


@pytest.mark.parametrize("program", FAULTY)
def test_the_line_is_named_in_a_step_that_is_not_recorded(program, tmp_path):
    source = (PROGRAMS / f"{program}.py").read_text()
    lines = marked_lines(source, SLUG)

    (finding,) = lightly(program, tmp_path)

    found = None if finding.place is None else finding.place.line
    assert found == ELSEWHERE.get(program, *lines)


def test_where_one_run_cannot_tell_the_line_it_says_which_can(tmp_path):
    (finding,) = lightly("nan_custom_function", tmp_path)

    assert finding.place is None
    assert "--trace-all" in finding.fix


@pytest.mark.parametrize("program", ["nan_custom_function", "nan_missing_values_in_a_table"])
def test_a_run_that_traces_all_steps_is_certain(program, tmp_path):
    path = PROGRAMS / f"{program}.py"
    session = Session(SessionOptions(tmp_path / "run", str(path), trace_all=True))
    session.start()
    kept = runpy.run_path(str(path))
    session.finish()
    assert kept

    evidence = read_evidence(session.path)
    (finding,) = check(SLUG, evidence)

    assert finding.place is not None
    assert [finding.place.line] == marked_lines(path.read_text(), SLUG)
    assert evidence.info.traced_steps == evidence.info.steps


@pytest.mark.parametrize("program", QUIET)
def test_what_never_reaches_a_parameter_is_silent(program, tmp_path):
    assert lightly(program, tmp_path) == []


def births(evidence):
    return [(e.subject, e.detail["side"], e.detail["value"]) for e in evidence.events_of("nonfinite")]


def one_step(loss_of):
    """Return a program of one step on a model of two parameters."""

    def program():
        model = nn.Linear(2, 2)
        nn.init.ones_(model.weight)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loss_of(model).backward()
        optimizer.step()
        return model

    return program


@pytest.mark.parametrize(
    ("loss_of", "expected"),
    [
        (lambda m: (m(torch.zeros(1, 2)) - m.bias).log().sum(), ("log", "forward", "Inf")),
        (lambda m: (m(torch.ones(1, 2)) * 1e3).exp().sum(), ("exp", "forward", "Inf")),
        (lambda m: m(torch.ones(1, 2)).std(dim=0).sum(), ("std", "forward", "NaN")),
        (lambda m: (m.weight - m.weight.detach()).sqrt().sum(), ("sqrt", "backward", "Inf")),
        (lambda m: (m.weight.abs() ** 0.5 * (m.weight - 1.0).abs() ** 0.5).sum(), ("pow", "backward", "Inf")),
        (lambda m: torch.linalg.svd(m.weight * torch.eye(2))[0].sum(), ("linalg_svd", "backward", "NaN")),
        (lambda m: torch.where(m.weight > 2, m.weight.log().div(0.0), m.weight).sum(), ("div", "backward", "NaN")),
        (lambda m: m(torch.tensor([[1.0, float("nan")]])).sum(), ("tensor", "data", "NaN")),
        (lambda m: m(torch.zeros(1, 2).masked_fill(torch.ones(1, 2) > 0, -torch.inf)).softmax(1).sum(),
         ("softmax", "forward", "NaN")),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:std")
def test_the_operation_is_the_one_that_was_given_finite_numbers(loss_of, expected, tmp_path):
    evidence = watched(tmp_path, one_step(loss_of))

    assert births(evidence)[:1] == [expected]


def test_no_hook_and_no_mode_is_left_after_a_backward_that_raised(tmp_path):
    kept = {}

    def program():
        model = nn.Linear(2, 2)
        torch.optim.SGD(model.parameters(), lr=0.1)
        kept["loss"] = model(torch.ones(1, 2)).exp().sum()
        kept["loss"].backward(torch.ones(3))

    evidence = watched(tmp_path, program)

    assert evidence.info.raised is not None
    assert torch._C._len_torch_function_stack() == 0
    kept["loss"].backward()
    assert births(evidence) == []
