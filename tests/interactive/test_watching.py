"""watch(): the same probe from inside a program."""

import inspect
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import whygrad
from tests.probe.test_transparency import fingerprint
from whygrad.config import Config
from whygrad.interactive.watching import Watch
from whygrad.probe.backwards import BACKWARDS
from whygrad.probe.session import Session
from whygrad.runfile.writer import MAX_BYTES

X = torch.linspace(-1, 1, 64).reshape(16, 4)
Y = torch.arange(16) % 2


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def mlp():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def fit(model, optimizer, steps=3):
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(model(X), Y).backward()
        optimizer.step()


def test_statistics_equal_those_of_hand_written_hooks():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    by_hand = {}
    for name, parameter in model.named_parameters():
        parameter.register_hook(
            lambda g, name=name: by_hand.update({name: (g.abs().mean().item(), g.std().item(), g.norm().item())})
        )

    with whygrad.watch(model, optimizer) as watched:
        fit(model, optimizer, steps=1)

    table = watched.table()
    rows = {name: i for i, name in enumerate(table["name"]) if table["kind"][i] == "parameter"}
    assert set(rows) == set(by_hand) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    for name, (mean_abs, std, norm) in by_hand.items():
        i = rows[name]
        assert math.isclose(table["mean_abs"][i], mean_abs, rel_tol=1e-5)
        assert math.isclose(table["std"][i], std, rel_tol=1e-5)
        assert math.isclose(table["l2"][i], norm, rel_tol=1e-5)
        assert (table["nans"][i], table["infs"][i]) == (0, 0)


def test_outputs_have_statistics_too():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    with whygrad.watch(model, optimizer) as watched:
        fit(model, optimizer)

    table = watched.table()
    assert {n for n, kind in zip(table["name"], table["kind"], strict=True) if kind == "output"} == {"0", "1", "2"}


def test_a_healthy_training_has_no_findings_and_says_so():
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    with whygrad.watch(model, optimizer) as watched:
        fit(model, optimizer, steps=20)

    assert watched.findings == ()
    assert "4 of 4 parameters learn" in watched.report()


def test_a_fault_is_found_while_the_training_goes_on():
    model = mlp()
    optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)
    watched = whygrad.watch(model, optimizer)

    fit(model, optimizer, steps=5)
    early = [finding.rule for finding in watched.findings]
    fit(model, optimizer, steps=5)
    watched.close()

    assert early == ["not-in-optimizer"]
    (finding,) = watched.findings
    assert set(finding.tensors) == {"0.weight", "0.bias"}
    assert watched.run.evidence.info.steps == 10


def test_an_optimizer_made_before_is_found_without_being_given():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    with whygrad.watch(model) as watched:
        fit(model, optimizer, steps=2)

    assert watched.run.evidence.info.steps == 2
    assert [o.steps for o in watched.run.evidence.optimizers if o.steps] == [2]


def test_nothing_is_left_when_it_ends_even_by_an_exception():
    before = fingerprint()

    with pytest.raises(ZeroDivisionError), whygrad.watch(mlp()) as watched:
        raise ZeroDivisionError

    assert fingerprint() == before
    assert watched.run.evidence.info.raised.type == "ZeroDivisionError"


def test_a_second_watch_reads_the_first_ones_run_and_does_not_end_it():
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with whygrad.watch(model, optimizer) as outer:
        with whygrad.watch(model) as inner:
            fit(model, optimizer, steps=2)
        fit(model, optimizer, steps=2)

    assert inner.run.path == outer.run.path
    assert outer.run.evidence.info.steps == 4


def test_a_run_is_kept_and_loaded(tmp_path):
    model = mlp()
    with whygrad.watch(model, folder=tmp_path / "mine") as watched:
        fit(model, torch.optim.SGD(model.parameters(), lr=0.1))

    saved = watched.run.save(tmp_path / "copy.whygrad")

    assert whygrad.load(saved).table() == watched.table()
    assert whygrad.load(tmp_path / "mine").evidence.info.steps == 3


def test_the_default_folder_is_ignored_by_git(tmp_path):
    with whygrad.watch(mlp()):
        pass

    assert (tmp_path / ".whygrad" / ".gitignore").read_text() == "*\n"


def test_it_shows_in_a_notebook_and_as_text():
    model = mlp()
    watched = whygrad.watch(model)
    assert repr(watched).startswith("<whygrad.Watch watching: 0 steps")
    watched.close()

    bundle = watched._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert isinstance(watched, Watch)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("model",), "not str"),
        ((nn.Linear(1, 1), "sgd"), "takes a torch.optim.Optimizer as optimizer, not str"),
        (([nn.Linear(1, 1), 3],), "not int"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(whygrad.WhygradError, match=message):
        whygrad.watch(*arguments)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(whygrad.WhygradError, match="file"):
        whygrad.watch(mlp(), folder=tmp_path / "file" / "run")


def test_the_run_file_may_be_as_large_as_the_command_lets_it_be():
    default = inspect.signature(whygrad.watch).parameters["max_size"].default

    assert default == Config().max_size == MAX_BYTES / 10**6


def test_the_run_file_is_kept_to_the_size_that_is_asked_for(monkeypatch):
    made = []
    monkeypatch.setattr(Session, "start", lambda session: made.append(session.options.max_bytes))

    whygrad.watch(max_size=20.5)
    BACKWARDS.remove()

    assert made == [20_500_000]
