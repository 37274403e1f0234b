"""What the probe puts into the process is invisible while it is there, and gone afterwards."""

import contextlib
import io
import os
import sys
import threading
import traceback
import warnings

import pytest
import torch
from torch import nn
from torch.nn.modules import module as module_hooks
from torch.optim import optimizer as optimizer_module
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext
from torch.utils.flop_counter import FlopCounterMode

from tests.probe.watched import by_name, watched
from whygrad.probe import installation
from whygrad.probe.guard import Guard
from whygrad.probe.patches import Patches, observed
from whygrad.probe.recording import Recorder
from whygrad.probe.session import Session, SessionOptions, active_session
from whygrad.probe.tracebacks import clean_traceback

X = torch.ones(4, 3)


ABSENT = object()


@pytest.fixture
def patched(monkeypatch):
    """What stood at each place before the first patch of it: (owner, name) -> value, filled while a session runs."""
    before = {}
    replace = Patches.replace

    def note(self, owner, name, new):
        before.setdefault((owner, name), owner.__dict__.get(name, ABSENT))
        replace(self, owner, name, new)

    monkeypatch.setattr(Patches, "replace", note)
    return before


def left_over(patched):
    """The places that do not hold what they held before."""
    return [(o, n) for (o, n), value in patched.items() if o.__dict__.get(n, ABSENT) is not value]


def fingerprint():
    """The hooks and modes that a session adds to."""
    return {
        "pre": dict(optimizer_module._global_optimizer_pre_hooks),
        "post": dict(optimizer_module._global_optimizer_post_hooks),
        "registration": dict(module_hooks._global_parameter_registration_hooks),
        "modules": dict(module_hooks._global_module_registration_hooks),
        "modes": torch._C._len_torch_function_stack(),
    }


def fit(steps=2):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(X).sum().backward()
        optimizer.step()
    return model


def test_nothing_is_left_after_a_session(tmp_path, patched):
    before = fingerprint()

    watched(tmp_path, fit)

    assert fingerprint() == before
    assert len(patched) > 20
    assert (nn.Module, "_call_impl") in patched
    assert left_over(patched) == []
    assert active_session() is None


def test_nothing_is_left_after_a_session_that_never_steps(tmp_path, patched):
    before = fingerprint()

    watched(tmp_path, lambda: nn.Linear(3, 1)(X))

    assert fingerprint() == before
    assert left_over(patched) == []


def test_nothing_is_left_of_a_session_that_could_not_begin(tmp_path, patched, monkeypatch):
    def unfit(_session, _patches):
        msg = "this torch has no such thing"
        raise AttributeError(msg)

    before = fingerprint()
    monkeypatch.setattr(installation, "_PARTS", (*installation._PARTS, unfit))

    with pytest.raises(AttributeError, match="no such thing"):
        Session(SessionOptions(tmp_path, "train.py")).start()

    assert patched
    assert left_over(patched) == []
    assert fingerprint() == before
    assert active_session() is None


def test_nothing_is_left_of_a_program_that_trains_in_a_thread(tmp_path, patched):
    before = fingerprint()
    after_training = []

    def train():
        fit(steps=12)  # longer than it is traced
        after_training.append(torch._C._len_torch_function_stack())

    def program():
        thread = threading.Thread(target=train)
        thread.start()
        thread.join()

    evidence = watched(tmp_path, program)

    assert evidence.info.traced_steps == 3
    assert after_training == [0]
    assert fingerprint() == before
    assert left_over(patched) == []


def test_a_part_that_failed_takes_its_calls_out(tmp_path, monkeypatch):
    session = Session(SessionOptions(tmp_path, "train.py"))
    plain = nn.Module._call_impl
    monkeypatch.setattr(session.training, "_step", lambda *_: 1 / 0)
    session.start()
    assert nn.Module._call_impl is not plain

    fit(steps=1)

    assert nn.Module._call_impl is plain
    assert not session.tracer.active
    session.finish()
    assert "ZeroDivisionError" in session.guard.failures["steps"]


def test_ctrl_c_within_the_probe_shows_the_programs_frames_only(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    session = Session(SessionOptions(tmp_path, "train.py"))
    monkeypatch.setattr(session.training, "before_step", interrupted)
    session.start()
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            fit(steps=1)
    finally:
        session.abandon()
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(caught.tb)]
    assert any("whygrad" in file for file in frames)

    clean_traceback(caught.value)

    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    assert frames[0] == __file__
    assert not any("/probe/" in file and "whygrad/probe" in file for file in frames)


def test_a_forked_child_is_not_watched(tmp_path):
    session = Session(SessionOptions(tmp_path, "train.py"))
    session.start()
    try:
        child = os.fork()
        if child == 0:
            os._exit(int(active_session() is not None or torch._C._len_torch_function_stack() > 0))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert active_session() is session
    finally:
        session.finish()


def test_a_patch_over_ours_stays():
    patches = Patches()
    owner = type("Owner", (), {"f": staticmethod(lambda: 1)})
    patches.replace(owner, "f", staticmethod(lambda: 2))
    theirs = staticmethod(lambda: 3)
    owner.f = theirs

    patches.undo()

    assert owner.__dict__["f"] is theirs


class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        return self.lin(x) @ torch.ones(7)


FAILING = {
    "in forward": lambda: Broken()(X),
    "in backward": lambda: torch.ones(2, requires_grad=True).mul(2).backward(),
    "in autograd.grad": lambda: torch.autograd.grad(torch.ones(2, requires_grad=True).mul(2), X),
    "in a function": lambda: nn.functional.cross_entropy(torch.ones(2, 3, requires_grad=True), torch.zeros(5).long()),
    "in an operation": lambda: torch.ones(2, requires_grad=True) + torch.ones(3),
    "in an optimizer": lambda: torch.optim.SGD([torch.ones(2, requires_grad=True).mul(2)], lr=0.1),
    "in load_state_dict": lambda: nn.Linear(3, 1).load_state_dict({}),
}


@pytest.mark.parametrize("where", FAILING)
def test_tracebacks_are_the_same(tmp_path, where):
    def shown():
        stream = io.StringIO()
        try:
            FAILING[where]()
        except (RuntimeError, ValueError) as error:
            with contextlib.redirect_stderr(stream):
                sys.excepthook(type(error), error, error.__traceback__)
        return stream.getvalue()

    seen = []
    expected = shown()
    watched(tmp_path, lambda: seen.append(shown()))

    assert seen == [expected]
    assert "Traceback" in expected
    assert "whygrad/probe" not in expected


def test_a_wrapper_called_wrongly_raises_as_the_function_would():
    def two(a, b):
        return a + b

    with pytest.raises(TypeError, match="missing 1 required positional argument: 'b'"):
        observed(two)(1)


def test_a_users_mode_does_not_see_the_probes_calls(tmp_path):
    class Counting(TorchFunctionMode):
        calls = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            Counting.calls += 1
            return func(*args, **(kwargs or {}))

    def program():
        with Counting():
            return fit()

    program()
    plain, Counting.calls = Counting.calls, 0
    watched(tmp_path, program)

    assert Counting.calls == plain > 0


def test_a_flop_counter_counts_the_same(tmp_path):
    def flops():
        with FlopCounterMode(display=False) as counter:
            fit()
        return counter.get_total_flops()

    seen = []
    watched(tmp_path, lambda: seen.append(flops()))

    assert seen == [flops()]


def test_a_users_mode_entered_in_one_step_and_left_in_another_is_popped_itself(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with torch.device("cpu"):
            for _ in range(6):  # the tracer goes within this block
                model(X).sum().backward()
                optimizer.step()
        left = torch.overrides._get_current_function_mode_stack()
        assert not [mode for mode in left if isinstance(mode, DeviceContext)]

    evidence = watched(tmp_path, program)

    assert evidence.info.raised is None
    assert evidence.info.traced_steps == 3


def test_an_error_inside_the_probe_switches_that_part_off_and_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(Recorder, "gradients", lambda *_: 1 / 0)
    session = Session(SessionOptions(tmp_path / "run", __file__))
    session.start()

    model = fit(3)
    session.finish()

    assert model.weight.grad is not None
    assert list(session.guard.failures) == ["steps"]
    assert "ZeroDivisionError" in session.guard.failures["steps"]
    assert any("switched off" in note and "steps: ZeroDivisionError" in note for note in session.all_notes())


def test_the_guard_does_not_observe_its_own_calls():
    guard = Guard()
    inner = guard.wrap("inner", lambda: "seen")
    outer = guard.wrap("outer", inner)

    assert outer() is None
    assert inner() == "seen"


def test_a_part_within_a_part_fails_by_itself():
    guard = Guard()

    outer = guard.wrap("outer", lambda: (guard.run("inner", lambda: 1 / 0), "went on"))

    assert outer() == (None, "went on")
    assert list(guard.failures) == ["inner"]


def test_the_guard_does_not_hide_the_users_interrupt():
    guard = Guard()

    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guard.run("part", interrupt)


def test_a_forked_child_does_not_write(tmp_path):
    session = Session(SessionOptions(tmp_path / "run", __file__))
    session.start()
    child = os.fork()
    if child == 0:
        session.abandon()
        fit(5)
        session.finish()
        os._exit(0)
    os.waitpid(child, 0)
    fit(2)
    session.finish()

    assert session.training.steps == 2
    assert active_session() is None


def test_only_one_session_is_active(tmp_path):
    session = Session(SessionOptions(tmp_path / "run", __file__))
    session.start()
    try:
        with pytest.raises(RuntimeError, match="active already"):
            Session(SessionOptions(tmp_path / "second", __file__)).start()
    finally:
        session.finish()


def test_reads_of_an_intermediates_grad_are_noted_with_its_names(tmp_path):
    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin, self.maps = nn.Linear(3, 2), None

        def forward(self, x):
            self.maps = torch.relu(self.lin(x))
            return self.maps.sum()

    def program():
        model = Keeps()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            model(X).backward()
            kept = model.maps
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert kept.grad is None
            optimizer.step()
        return model

    evidence = watched(tmp_path, program)

    (event,) = evidence.events_of("intermediate_grad_read")
    assert event.count == 2
    assert event.detail["names"] == ["maps", "kept"]
    assert event.place.code == "assert kept.grad is None"
    assert event.detail["made_at"]["code"] == "self.maps = torch.relu(self.lin(x))"


def test_reads_after_the_traced_steps_are_noted_from_torchs_warning(tmp_path):
    def program():
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(8):
            hidden = model(X)
            hidden.sum().backward()
            optimizer.step()
            if step == 7:
                with pytest.warns(UserWarning, match="not a leaf"):
                    assert hidden.grad is None
        return model

    evidence = watched(tmp_path, program)

    assert by_name(evidence)["weight"].gradient_steps == 8
    assert len(evidence.events_of("intermediate_grad_read")) <= 1  # a program may catch the warning itself


def test_dtypes_without_statistics_are_named_in_a_note(tmp_path):
    def program():
        weight = torch.ones(3, dtype=torch.complex64, requires_grad=True)
        for _ in range(2):
            (weight * weight.conj()).real.sum().backward()
        return weight

    evidence = watched(tmp_path, program)

    assert any("complex64" in note for note in evidence.info.notes)


READS = """
import torch
hidden = torch.ones(2, requires_grad=True) * 2
for _ in range(3):
    hidden.sum().backward(retain_graph=True)
    print(hidden.grad)
"""


def test_torchs_warning_about_an_intermediates_grad_names_the_programs_line(plain_run, whygrad_run):
    plain, seen = plain_run(READS), whygrad_run(READS)

    assert plain.stderr.count("UserWarning") == 1
    assert "train.py:6: UserWarning" in plain.stderr
    assert seen.stderr.startswith(plain.stderr)
    assert seen.slugs == ["nonleaf-parameter"]


BROADCAST = """
import torch
from torch import nn
layer = nn.Linear(3, 1)
def loss(a, b):
    return nn.functional.huber_loss(a, b)
for _ in range(6):
    loss(layer(torch.randn(4, 3)).flatten(), torch.randn(4, 1)).backward()
"""


def test_torchs_warning_from_within_a_python_function_names_the_programs_line(plain_run, whygrad_run):
    plain, seen = plain_run(BROADCAST), whygrad_run(BROADCAST)

    assert plain.stderr.count("train.py:6: UserWarning") == 1
    assert seen.stderr.startswith(plain.stderr)


EMPTY = """
import torch
for _ in range(3):
    torch.nn.Linear(4, 0)
print("made")
"""


def test_a_warning_about_the_caller_of_a_patched_function_names_the_programs_line(plain_run, whygrad_run):
    plain, seen = plain_run(EMPTY), whygrad_run(EMPTY)

    assert plain.stderr.count("UserWarning") == 1
    assert (seen.stdout, seen.status) == ("made\n", 0)
    assert seen.stderr.startswith(plain.stderr)


@pytest.mark.filterwarnings("ignore:.torch.jit.trace")
def test_a_model_is_traced_by_jit_as_without_whygrad(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        traced = torch.jit.trace(model, X)
        traced(X).sum().backward()
        assert model.weight.grad is not None

    assert watched(tmp_path, program).info.raised is None


def test_a_program_that_only_evaluates_is_not_watched_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr("whygrad.probe.windows.MAX_WINDOW_S", 0.05)

    def program():
        model = nn.Linear(3, 1)
        with torch.no_grad():
            for _ in range(2000):
                model(X)
        assert torch._C._len_torch_function_stack() == 0

    evidence = watched(tmp_path, program)

    assert evidence.info.raised is None
    assert any("not watched throughout" in note for note in evidence.info.notes)


def test_generators_that_the_program_hands_to_autograd_are_not_used_up(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        gradients = torch.autograd.grad(model(X).sum(), model.parameters())
        assert len(gradients) == 2
        model(X).sum().backward(inputs=model.parameters())
        assert model.weight.grad is not None

    assert watched(tmp_path, program).info.raised is None
