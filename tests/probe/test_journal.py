"""From the nodes of a graph back to the lines that made them, with numbers only."""

import gc
import threading
import weakref

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from whygrad.probe import journal as module
from whygrad.probe.journal import Journal, storage_key
from whygrad.probe.source import UserCode

X = torch.linspace(-1, 1, 6).reshape(2, 3)


class Watching(TorchFunctionMode):
    def __init__(self, journal):
        super().__init__()
        self.journal = journal
        self.asked = 0

    def here(self):
        self.asked += 1
        return UserCode().capture(skip_methods_of=self)

    def __enter__(self):
        self.journal.resume()
        return super().__enter__()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.journal.observe(func, args, kwargs or {}, result, self.here)
        return result


@pytest.fixture
def journal():
    return Journal()


@pytest.fixture
def watching(journal):
    return Watching(journal)


def made(journal, tensor):
    call = journal.made(tensor.grad_fn._sequence_nr())
    return None if call is None else call.operation


def test_a_node_leads_to_the_call_that_made_it_though_its_tensors_are_gone(journal, watching):
    layer = nn.Linear(3, 3)
    with watching:
        loss = torch.tanh(layer(X)).sum()
    nodes = [loss.grad_fn, loss.grad_fn.next_functions[0][0]]
    nodes.append(nodes[1].next_functions[0][0])

    calls = [journal.made(node._sequence_nr()) for node in nodes]

    assert ["sum", "tanh", "linear"] == [call.operation for call in calls]
    assert {"test_a_node_leads_to_the_call_that_made_it_though_its_tensors_are_gone"} == {
        call.site.code.co_name for call in calls
    }


def test_every_node_of_a_call_that_makes_many_leads_to_it(journal, watching):
    rnn = nn.GRU(3, 4)
    with watching:
        before = X.clone().requires_grad_() * 1
        seen, state = rnn(torch.ones(5, 2, 3) + before.sum())
    first, last = before.grad_fn._sequence_nr(), state.grad_fn._sequence_nr()

    operations = {journal.made(number).operation for number in range(first + 3, last + 1)}

    assert operations == {"gru"}
    assert made(journal, seen) == "gru"


def test_nodes_made_while_nobody_watched_lead_nowhere(journal, watching):
    weight = torch.ones(3, requires_grad=True)
    with watching:
        first = weight * 2
    unseen = weight * 3
    with watching:
        second = weight + 1
    after = weight - 1

    assert ["mul", None, "add", None] == [made(journal, t) for t in (first, unseen, second, after)]


@pytest.mark.filterwarnings("ignore:Using backward")
def test_nodes_of_a_derivative_lead_to_the_backward_that_made_them(journal, watching):
    weight = torch.ones(3, requires_grad=True)
    with watching:
        loss = (weight**3).sum()
        loss.backward(create_graph=True)
        journal.note_pass([loss], None, 0, walk=True)
        penalty = weight.grad.exp()

    assert ["exp", "backward"] == [made(journal, penalty), made(journal, weight.grad)]


WRITES = {
    "method": lambda t: t.mul_(2),
    "index": lambda t: t.__setitem__(0, 1.0),
    "out": lambda t: torch.add(t, 1, out=t),
    "inplace": lambda t: nn.functional.relu(t, inplace=True),
    "init": lambda t: nn.init.zeros_(tensor=t),
    "foreach": lambda t: torch._foreach_mul_([t], 2),
    "view": lambda t: t[0].zero_(),
    "detach": lambda t: t.detach().add_(1),
}


@pytest.mark.parametrize("way", WRITES)
def test_writes_are_found_by_storage_and_version(journal, watching, way):
    tensor = torch.ones(3)
    with watching:
        WRITES[way](tensor)

    call = journal.written(storage_key(tensor), tensor._version)

    assert call is not None
    assert call.site.code.co_name == "<lambda>"


def test_reading_and_computing_write_nothing(journal, watching):
    tensor = torch.ones(3)
    with watching:
        tensor.requires_grad_()
        tensor.abs()
        tensor.__len__()
        nn.functional.relu(tensor, inplace=False)

    assert all(journal.written(storage_key(tensor), version) is None for version in range(3))


def test_a_write_before_the_tensor_was_made_is_another_tensors(journal, watching):
    tensor = torch.ones(3, requires_grad=True)
    with watching:
        h = tensor * 2
        number = h.grad_fn._sequence_nr()
        h.add_(1)

    key = storage_key(h)

    assert "add_" == journal.written(key, 1, since=number).operation
    assert journal.written(key, 1, since=h.grad_fn._sequence_nr() + 1) is None


def test_the_line_is_not_asked_for_where_nothing_is_to_note(watching):
    with watching:
        for _ in range(10):
            (X + 1).exp().sum().item()

    assert watching.asked == 0


def test_tensors_of_inference_mode_are_known_by_their_storage(journal, watching):
    with watching, torch.inference_mode():
        feature = (X * 2).relu()

    assert journal.made_untracked(feature).operation == "relu"
    assert journal.made_untracked(X) is None


def test_calls_of_other_threads_are_left_out(journal):
    found = []

    def work():
        weight = torch.ones(3, requires_grad=True)
        with Watching(journal):
            found.append(weight * 2)
        journal.note_pass(found, None, 0, walk=True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert made(journal, found[0]) is None
    assert not journal.passes


def test_a_pass_knows_its_nodes_or_only_when_it_was(journal):
    weight = torch.ones(3, requires_grad=True)
    first, second = weight.exp(), weight.sin()
    first.sum().backward()
    journal.note_pass([first], None, 0, walk=True)
    journal.note_pass([first], None, 0, walk=False)
    later = weight.cos()
    numbers = [t.grad_fn._sequence_nr() for t in (first, second, later)]
    walked, unwalked = journal.passes

    assert [True, False, False] == [walked.covers(n) for n in numbers]
    assert [True, True, False] == [unwalked.covers(n) for n in numbers]


def test_a_pass_that_keeps_its_graph_is_not_noted(journal):
    weight = torch.ones(3, requires_grad=True)
    loss = weight.exp().sum()
    loss.backward(retain_graph=True)
    journal.note_pass([loss], None, 0, walk=True)
    loss.backward()
    journal.note_pass([loss], None, 1, walk=True)

    assert [1] == [each.steps for each in journal.passes]


def test_a_pass_over_a_huge_graph_is_not_walked(journal, monkeypatch):
    monkeypatch.setattr(module, "MAX_PASS_NODES", 10)
    x = torch.ones(3, requires_grad=True)
    for _ in range(20):
        x = x * 1

    journal.note_pass([x], None, 0, walk=True)

    assert journal.passes[0].nodes is None


def test_the_journal_does_not_grow_without_end(journal, watching, monkeypatch):
    monkeypatch.setattr(module, "MAX_ROWS", 40)
    weight = torch.ones(3, requires_grad=True)
    with watching:
        tensors = [weight * 2 for _ in range(200)]

    assert len(journal._numbers) <= 40
    assert made(journal, tensors[-1]) == "mul"
    assert made(journal, tensors[0]) is None


def test_nothing_is_kept_alive(journal, watching):
    layer = nn.Linear(3, 3)
    with watching:
        h = layer(X)
        h.relu_()
        h.sum().backward()
        journal.note_pass([h], None, 0, walk=True)
    kept = weakref.ref(h), weakref.ref(layer.weight)
    del h, layer
    gc.collect()

    assert [None, None] == [each() for each in kept]


def test_tensors_without_a_storage_have_no_key():
    assert storage_key(torch.eye(3).to_sparse()) == 0
    assert storage_key(torch.eye(3)) != 0
