"""The record of backward passes sees what it must, holds nothing, and changes nothing."""

from __future__ import annotations

import functools
import gc
import traceback
import weakref

import pytest
import torch
from torch import nn
from torch.autograd.graph import get_gradient_edge
from torch.utils.checkpoint import checkpoint

from whygrad.probe import backwards
from whygrad.probe.backwards import BackwardRecord


@pytest.fixture
def record():
    """Return a record that is installed, beside the one that `explain` uses."""
    made = BackwardRecord()
    made.install()
    yield made
    made.remove()


def leaf():
    return torch.ones(3, requires_grad=True)


def test_installing_is_undone_by_the_last_holder():
    original = torch.autograd.backward
    record = BackwardRecord()
    record.install()
    record.install()
    patched = torch.autograd.backward
    record.remove()
    (leaf() * 2).sum().backward()

    assert torch.autograd.backward is patched
    assert patched is not original
    assert record.past(leaf()).passes == 1
    record.remove()
    assert torch.autograd.backward is original


def test_removing_what_is_not_installed_is_an_error():
    with pytest.raises(RuntimeError, match="not installed"):
        BackwardRecord().remove()


def test_a_record_starts_empty_each_time():
    record = BackwardRecord()
    for _ in range(2):
        record.install()
        assert record.past(leaf()).passes == 0
        (leaf() * 2).sum().backward()
        assert record.past(leaf()).passes == 1
        record.remove()


def test_a_wrapper_that_somebody_put_on_top_still_works_and_records_nothing(monkeypatch):
    record = BackwardRecord()
    record.install()
    monkeypatch.setattr(torch.autograd, "backward", functools.partial(torch.autograd.backward))
    record.remove()
    a = leaf()
    (a * 2).sum().backward()

    assert a.grad is not None
    assert record.past(a).passes == 0


def test_passes_are_counted_and_leaves_followed(record):
    used, unused = leaf(), leaf()
    waiting = record.past(used)
    (used * 2).sum().backward()

    assert (waiting.ran, waiting.reached, waiting.arrived) == (False, False, False)
    assert record.past(used).arrived
    assert (record.past(unused).ran, record.past(unused).reached) == (True, False)
    assert record.past(used).passes == record.past(used).walked == 1


def test_an_intermediate_is_followed_by_its_node(record):
    a = leaf()
    b, beside = a * 2, a * 3
    b.sum().backward()
    after = a * 4

    assert (record.past(b).ran, record.past(b).reached) == (True, True)
    assert (record.past(beside).ran, record.past(beside).reached) == (True, False)
    assert (record.past(after).ran, record.past(after).reached) == (False, False)


def test_an_intermediate_is_remembered_while_losses_take_turns(record):
    a = leaf()
    b = a * 2
    b.sum().backward()
    for _ in range(backwards.RECENT - 1):
        (a * 3).sum().backward()

    assert record.past(b).reached


@pytest.mark.parametrize("call", ["method", "function", "keyword", "list", "edge", "leaf"])
def test_every_way_to_call_backward_is_seen(record, call):
    a = torch.tensor(1.0, requires_grad=True)
    loss = a if call == "leaf" else a * 2
    match call:
        case "method" | "leaf":
            loss.backward()
        case "function":
            torch.autograd.backward(loss)
        case "keyword":
            torch.autograd.backward(tensors=loss)
        case "list":
            torch.autograd.backward([loss])
        case "edge":
            torch.autograd.backward(get_gradient_edge(loss))

    assert record.past(a).arrived


def test_an_iterator_of_losses_is_used_up_by_the_call_and_not_missed(record):
    a = torch.tensor(1.0, requires_grad=True)
    torch.autograd.backward(loss for loss in [a * 2])

    assert a.grad.item() == 2
    assert (record.past(a).passes, record.past(a).arrived) == (1, False)


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_a_checkpoint_is_part_of_one_pass(record, use_reentrant):
    model, a = nn.Linear(3, 3), leaf()
    checkpoint(model, a, use_reentrant=use_reentrant).sum().backward()

    assert record.past(a).passes == 1
    assert record.past(a).arrived
    assert record.past(model.weight).arrived


def test_a_backward_that_fails_is_not_counted_and_its_traceback_is_torchs_own(record):
    loss = (leaf() ** 2).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="second time") as failure:
        loss.backward()

    files = [frame.filename for frame in traceback.extract_tb(failure.value.__traceback__)]
    assert not [file for file in files if "whygrad/probe" in file.replace("\\", "/")]
    assert record.past(leaf()).passes == 1


def test_two_steps_of_training_are_the_same_bits_with_and_without():
    def train():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(8, 2))
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.randn(16, 4)).square().sum().backward()
            optimizer.step()
        return [*model.parameters(), *model.buffers(), torch.get_rng_state()]

    plain = train()
    record = BackwardRecord()
    record.install()
    watched = train()
    record.remove()

    assert all(torch.equal(one, other) for one, other in zip(plain, watched, strict=True))


def test_it_keeps_neither_leaves_nor_graphs_alive(record):
    a = leaf()
    b = a * 2
    b.sum().backward()
    record.past(a)
    references = [weakref.ref(a), weakref.ref(b)]
    del a, b

    assert [reference() for reference in references] == [None, None]


def test_entries_of_leaves_that_are_gone_make_room(record, monkeypatch):
    kept = leaf()
    (kept * 2).sum().backward()
    monkeypatch.setattr(record, "_room", 8)
    for _ in range(100):
        record.past(leaf())
        (leaf() * 2).sum().backward()

    assert len(record._entries) < 8 + 100
    assert record.past(kept).arrived


def test_the_record_of_one_leaf_is_not_taken_for_another_at_its_address(record):
    addresses = []
    while len(addresses) < 20 or (len(addresses) == len(set(addresses)) and len(addresses) < 2000):
        new = leaf()
        addresses.append(new._cdata)
        gc.collect(0)  # its age does not show: only the memory tells it from the leaf that was there before
        assert not record.past(new).arrived
        (new * 2).sum().backward()
        del new

    assert len(set(addresses)) < len(addresses)  # else this test has shown nothing


def test_nor_is_one_that_took_over_the_memory_as_well(record):
    delta = leaf()
    for _ in range(10):
        (delta * 2).sum().backward()
        delta = delta.detach().requires_grad_()
        assert record.past(delta).ran is False


def test_a_leaf_whose_age_does_not_show_is_not_judged(record):
    a = leaf()
    (leaf() * 2).sum().backward()
    gc.collect(0)

    assert [record.past(a).ran for _ in range(2)] == [None, None]
    (leaf() * 2).sum().backward()
    gc.collect(0)
    assert record.past(a).ran is True


def test_a_module_can_swap_its_parameters(record):
    model = nn.Linear(3, 3)
    model(leaf()).sum().backward()
    record.past(model.weight)
    model.zero_grad()
    torch.utils.swap_tensors(model.weight, nn.Parameter(torch.zeros(3, 3)))

    assert model.weight.sum() == 0


def test_beyond_its_share_of_time_only_the_first_passes_are_looked_over(record, monkeypatch):
    monkeypatch.setattr(backwards, "WALK_SHARE", 0.0)
    monkeypatch.setattr(backwards, "ALWAYS_WALKED", 2)
    b = leaf() * 2
    for _ in range(3):
        (leaf() * 2).sum().backward()
    late = leaf()
    (late * 2).sum().backward()

    past = record.past(b)
    assert (past.passes, past.walked) == (4, 2)
    assert (past.ran, past.reached) == (True, None)
    assert not record.past(late).arrived


def test_a_graph_without_end_is_not_walked_to_it(record, monkeypatch):
    monkeypatch.setattr(backwards, "MAX_NODES", 10)
    a = leaf()
    b = a
    for _ in range(20):
        b = b * 1.5
    b.sum().backward()

    assert (record.past(b).passes, record.past(b).walked) == (1, 0)
    assert record.past(b).reached is None


def test_an_error_of_its_own_switches_it_off_and_stays_out_of_the_program(record, monkeypatch):
    def broken(_roots):
        raise ZeroDivisionError

    monkeypatch.setattr(backwards, "_walk", broken)
    a = leaf()
    for _ in range(2):
        (a * 2).sum().backward()

    assert a.grad.tolist() == [4.0, 4.0, 4.0]
    assert record.past(leaf()).passes == 1


def test_while_a_graph_is_compiled_it_stays_out_of_the_way(record, monkeypatch):
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    (leaf() * 2).sum().backward()

    assert record.past(leaf()).passes == 0
