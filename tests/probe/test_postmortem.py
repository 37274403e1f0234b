"""Which of autograd's errors ended the program, and the tensor it is about."""

import os
import weakref

import numpy as np
import pytest
import torch
from torch import nn

from tests.probe.postmortems import code, explained
from whygrad.probe.postmortem import errors
from whygrad.probe.postmortem.errors import REASONS, Reason, explain_error
from whygrad.probe.session import Session, SessionOptions

X = torch.linspace(-1, 1, 24).reshape(8, 3)


def facts(raised):
    return raised.reason, raised.tensor, code(raised.made_at), code(raised.place)


def test_any_other_error_keeps_type_message_and_place_and_gets_no_reason(tmp_path):
    def program():
        nn.Linear(3, 3)(torch.ones(2, 5))

    raised = explained(tmp_path, program)

    assert ("RuntimeError", "") == (raised.type, raised.reason)
    assert "cannot be multiplied" in raised.message
    assert code(raised.place) == "nn.Linear(3, 3)(torch.ones(2, 5))"


def test_a_loss_that_does_not_require_grad(tmp_path):
    def program():
        model = nn.Linear(3, 1).requires_grad_(False)
        objective = model(X).mean()
        objective.backward()

    raised = explained(tmp_path, program)

    made = "objective = model(X).mean()"
    assert facts(raised) == ("does-not-require-grad", "objective", made, "objective.backward()")


def test_a_loss_without_grad_that_a_call_makes_has_the_name_of_its_holder_or_none(tmp_path):
    def scaled():
        loss = nn.Linear(3, 1).requires_grad_(False)(X).mean()
        torch.autograd.backward(loss)

    def nameless():
        nn.Linear(3, 1).requires_grad_(False)(X).mean().backward()

    def as_argument():
        scaler = torch.amp.GradScaler("cpu")
        loss = nn.Linear(3, 1).requires_grad_(False)(X).mean()
        scaler.scale(loss).backward()

    assert explained(tmp_path / "a", scaled).tensor == "loss"
    assert explained(tmp_path / "c", as_argument).tensor == "loss"
    assert explained(tmp_path / "b", nameless).tensor == ""


def test_an_optimizer_refuses_what_was_moved_after_it_was_marked(tmp_path):
    def program():
        prompt = [torch.zeros(4, requires_grad=True).to(torch.float64) for _ in range(2)]
        torch.optim.Adam(prompt)

    raised = explained(tmp_path, program)

    made = "prompt = [torch.zeros(4, requires_grad=True).to(torch.float64) for _ in range(2)]"
    assert facts(raised) == ("non-leaf-parameter", "prompt", made, "torch.optim.Adam(prompt)")
    assert raised.operation == "to"


def test_an_optimizer_refuses_a_computed_weight_in_a_group(tmp_path):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.raw = nn.Parameter(torch.ones(3))
            self.scale = self.raw.exp()

    def program():
        model = Scaled()
        torch.optim.SGD([{"params": [model.raw]}, {"params": [model.scale]}], lr=0.1)

    raised = explained(tmp_path, program)

    assert ("non-leaf-parameter", "scale", "exp") == (raised.reason, raised.tensor, raised.operation)
    assert code(raised.made_at) == "self.scale = self.raw.exp()"


def test_an_optimizer_without_parameters(tmp_path):
    def program():
        parameters = nn.ReLU().parameters()
        torch.optim.SGD(parameters, lr=0.1)

    assert facts(explained(tmp_path, program)) == (
        "empty-parameter-list",
        "",
        None,
        "torch.optim.SGD(parameters, lr=0.1)",
    )


def test_a_gradient_with_respect_to_what_the_loss_does_not_use(tmp_path):
    def program():
        used, unused = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        hidden = unused * 2
        loss = used.exp().sum()
        torch.autograd.grad(loss, [used, hidden])

    raised = explained(tmp_path, program)

    assert facts(raised) == (
        "unused-input",
        "hidden",
        "hidden = unused * 2",
        "torch.autograd.grad(loss, [used, hidden])",
    )


def test_a_gradient_with_respect_to_an_unused_leaf_of_a_model(tmp_path):
    def program():
        model = nn.ModuleDict({"used": nn.Linear(3, 1), "idle": nn.Linear(3, 1)})
        torch.autograd.grad(model["used"](X).sum(), model.parameters())

    assert explained(tmp_path, program).tensor == "idle.weight"


@pytest.mark.parametrize("through", ["method", "array"])
def test_numpy_of_a_tensor_with_a_history(tmp_path, through):
    def method():
        score = nn.Linear(3, 1)(X).sigmoid()
        return score.numpy()

    def array():
        score = nn.Linear(3, 1)(X).sigmoid()
        return np.mean(np.asarray(score))

    raised = explained(tmp_path, {"method": method, "array": array}[through])

    assert ("numpy-of-requires-grad", "score", "sigmoid") == (raised.reason, raised.tensor, raised.operation)
    assert code(raised.made_at) == "score = nn.Linear(3, 1)(X).sigmoid()"


def test_features_cached_in_inference_mode(tmp_path):
    class Probe(nn.Module):
        def __init__(self, backbone):
            super().__init__()
            self.head = nn.Linear(3, 1)
            with torch.inference_mode():
                self.cache = backbone(X).relu()

        def forward(self):
            return self.head(self.cache)

    def program():
        probe = Probe(nn.Linear(3, 3))
        probe().mean().backward()

    raised = explained(tmp_path, program)

    assert facts(raised) == (
        "inference-tensor",
        "cache",
        "self.cache = backbone(X).relu()",
        "return self.head(self.cache)",
    )
    assert raised.operation == "relu"


def test_a_write_into_a_tensor_of_inference_mode(tmp_path):
    def program():
        with torch.inference_mode():
            mean = X.mean(0)
        mean += 1

    raised = explained(tmp_path, program)

    assert facts(raised) == ("inference-tensor", "mean", "mean = X.mean(0)", "mean += 1")


def test_distributed_training_names_the_parameter_that_got_no_gradient(tmp_path):
    class Partly(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.idle = nn.Linear(3, 1), nn.Linear(3, 1)

        def forward(self, x):
            return self.used(x)

    def program():
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
        torch.distributed.init_process_group("gloo", rank=0, world_size=1, init_method=f"file://{tmp_path}/store")
        try:
            model = nn.parallel.DistributedDataParallel(Partly())
            for _ in range(2):
                model(X).sum().backward()
        finally:
            torch.distributed.destroy_process_group()

    raised = explained(tmp_path, program)

    assert ("ddp-unused", "idle.weight") == (raised.reason, raised.tensor)
    assert code(raised.place) == "model(X).sum().backward()"


def test_the_reason_is_found_behind_other_errors(tmp_path):
    def program():
        try:
            nn.Linear(3, 1).requires_grad_(False)(X).sum().backward()
        finally:
            {}["cleanup"]

    raised = explained(tmp_path, program)

    assert ("KeyError", "does-not-require-grad") == (raised.type, raised.reason)
    assert code(raised.place).endswith(".backward()")


def test_the_reason_is_found_in_a_group_of_errors(tmp_path):
    def program():
        errors = []
        for loss in (X.sum(), X.mean()):
            try:
                loss.backward()
            except RuntimeError as error:
                errors.append(error)
        message = "workers failed"
        raise ExceptionGroup(message, errors)

    raised = explained(tmp_path, program)

    assert ("ExceptionGroup", "does-not-require-grad") == (raised.type, raised.reason)
    assert code(raised.place) == "loss.backward()"


def test_an_error_reported_from_another_process_has_its_reason_by_the_text_alone(tmp_path):
    def program():
        text = "Caught RuntimeError in replica 0.\nTraceback: Trying to backward through the graph a second time (or"
        raise RuntimeError(text)

    raised = explained(tmp_path, program)

    assert facts(raised) == ("graph-freed", "", None, "raise RuntimeError(text)")


def test_chains_that_lead_back_to_themselves_end(tmp_path):
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first

    def program():
        raise first

    assert explained(tmp_path, program).reason == ""


def test_nothing_is_kept_alive_and_no_session_is_needed_to_be_active(tmp_path):
    session = Session(SessionOptions(tmp_path / "run", __file__))
    layer = nn.Linear(3, 3)
    kept = weakref.ref(layer)
    try:
        layer(torch.ones(2, 5))
    except RuntimeError as error:
        raised = explain_error(session, error)
    del layer

    assert raised.reason == ""
    assert kept() is None


def test_programs_attributes_are_read_without_running_its_code(tmp_path):
    class Lazy:
        def __init__(self):
            self.loss = X.sum()

        @property
        def expensive(self):
            raise AssertionError

        def __getattr__(self, name):
            raise AssertionError

        def train(self):
            self.loss.backward()

    raised = explained(tmp_path, Lazy().train)

    assert facts(raised) == ("does-not-require-grad", "loss", "self.loss = X.sum()", "self.loss.backward()")


def test_an_error_of_its_own_leaves_reason_and_message(tmp_path, monkeypatch):
    def broken(_failure):
        raise LookupError

    reason = Reason("graph-freed", ("second time",), broken)
    monkeypatch.setattr(errors, "REASONS", (reason,))
    session = Session(SessionOptions(tmp_path / "run", __file__))

    raised = explain_error(session, RuntimeError("Trying to backward through the graph a second time"))

    assert ("graph-freed", "") == (raised.reason, raised.tensor)
    assert raised.message.startswith("Trying")
    assert list(session.guard.failures) == ["post-mortem"]


def test_every_reason_is_told_in_lower_case_and_once():
    told = [text for reason in REASONS for text in reason.says]

    assert told == [text.lower() for text in told]
    assert len(told) == len(set(told))
