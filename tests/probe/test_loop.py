"""The order of the loop is told as it was, round by round, for each optimizer."""

import itertools
import warnings

import torch
from torch import nn

from tests.probe.watched import watched
from whygrad.model import Deed, Mark

X = torch.ones(4, 3)


def rounds(evidence, optimizer=0):
    """Return (count, [(deed, marks, times), ...]) of each kind of round that a step or skip ended."""
    return [
        (each.count, [(h.deed.value, h.marks, h.times) for h in evidence.happenings if h.round == each.id])
        for each in evidence.rounds
        if each.optimizer == optimizer and not each.unfinished
    ]


def trained(loop, make=lambda p: torch.optim.SGD(p, lr=0.1), times=4):
    def program():
        model = nn.Linear(3, 1)
        optimizer = make(model.parameters())
        for _ in range(times):
            loop(model, optimizer)
        return model

    return program


def test_equal_rounds_are_counted_together(tmp_path):
    def loop(model, optimizer):
        optimizer.zero_grad()
        model(X).sum().backward()
        optimizer.step()

    evidence = watched(tmp_path, trained(loop))

    usual = [("clear", (), 1), ("backward", (), 1), ("step", (), 1)]
    assert rounds(evidence) == [(1, usual), (3, usual)]
    assert [(r.first, r.first_step, r.last_step) for r in evidence.rounds] == [(True, 0, 0), (False, 1, 3)]
    assert {h.place.function for h in evidence.happenings} == {"loop"}


def test_equal_happenings_in_a_row_are_one(tmp_path):
    def loop(model, optimizer):
        for _ in range(3):
            model(X).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    evidence = watched(tmp_path, trained(loop))

    assert rounds(evidence)[1] == (3, [("clear", (), 1), ("backward", (), 3), ("step", (), 1)])


def test_a_step_on_gradients_that_were_assigned_after_backward_is_marked(tmp_path):
    def loop(model, optimizer):
        model(X).sum().backward()
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()

    evidence = watched(tmp_path, trained(loop))

    assert rounds(evidence)[1] == (3, [("backward", (), 1), ("step", (Mark.REPLACED,), 1)])


def test_a_clear_by_hand_is_seen_however_it_is_done(tmp_path):
    def to_none(parameter):
        parameter.grad = None

    def in_place(parameter):
        parameter.grad.zero_()

    def behind_the_back(parameter):
        parameter.grad.data.zero_()

    for number, clear in enumerate((to_none, in_place, behind_the_back)):

        def loop(model, optimizer, clear=clear):
            model(X).sum().backward()
            optimizer.step()
            for parameter in model.parameters():
                clear(parameter)

        evidence = watched(tmp_path / str(number), trained(loop))

        assert rounds(evidence)[1] == (3, [("clear-by-hand", (), 1), ("backward", (), 1), ("step", (), 1)])


def test_gradients_that_nobody_clears_show_no_clear(tmp_path):
    def loop(model, optimizer):
        model(X).sum().backward()
        optimizer.step()

    evidence = watched(tmp_path, trained(loop))

    assert rounds(evidence)[1] == (3, [("backward", (), 1), ("step", (), 1)])


def test_a_step_without_gradients_is_marked(tmp_path):
    for number, to_none in enumerate((True, False)):

        def loop(model, optimizer, to_none=to_none):
            model(X).sum().backward()
            optimizer.zero_grad(set_to_none=to_none)
            optimizer.step()

        evidence = watched(tmp_path / str(number), trained(loop))

        assert rounds(evidence)[0][1][-1] == ("step", ("empty",), 1)


def test_a_module_clears_the_gradients_of_every_optimizer_that_holds_its_tensors(tmp_path):
    def program():
        model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
        first = torch.optim.SGD(model[0].parameters(), lr=0.1)
        second = torch.optim.SGD(model[1].parameters(), lr=0.1)
        for _ in range(3):
            model(X).sum().backward()
            first.step()
            second.step()
            model.zero_grad()
        return model

    evidence = watched(tmp_path, program)

    clears = [h for h in evidence.happenings if h.deed is Deed.CLEAR]
    assert clears
    assert {h.optimizers for h in clears} == {(0, 1)}


def test_a_pass_is_on_the_way_for_what_its_loss_goes_through_only(tmp_path):
    def program():
        generator, critic = nn.Linear(3, 3), nn.Linear(3, 1)
        one = torch.optim.SGD(generator.parameters(), lr=0.1)
        other = torch.optim.SGD(critic.parameters(), lr=0.1)
        for _ in range(3):
            one.zero_grad()
            critic(generator(X)).sum().backward()
            one.step()
            other.zero_grad()
            critic(generator(X).detach()).sum().backward()
            other.step()
        return generator, critic

    evidence = watched(tmp_path, program)

    assert all(h.marks == () for h in evidence.happenings if _owner(evidence, h) == 0)
    passes = [h for h in evidence.happenings if _owner(evidence, h) == 1 and h.deed is Deed.BACKWARD]
    assert {(h.optimizers, h.marks) for h in passes} == {((0, 1), ("on-the-way",)), ((1,), ())}


def _owner(evidence, happening):
    return next(each.optimizer for each in evidence.rounds if each.id == happening.round)


def test_a_pass_that_reaches_an_input_is_marked(tmp_path):
    def loop(model, optimizer):
        attacked = X.clone().requires_grad_()
        model(attacked).sum().backward()
        optimizer.zero_grad()
        model(X).sum().backward()
        optimizer.step()

    first, *_ = rounds(watched(tmp_path, trained(loop)))

    assert first[1][0] == ("backward", (Mark.INPUT.value,), 1)
    assert first[1][2] == ("backward", (), 1)


def test_gradients_that_the_program_uses_before_it_clears_them_are_marked(tmp_path):
    def reads(model):
        return [parameter.grad.clone() for parameter in model.parameters()]

    def moves(model):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.01)

    def clips(model):
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)

    for number, (use, marks) in enumerate(((reads, ("used",)), (moves, ("used",)), (clips, ()))):

        def loop(model, optimizer, use=use):
            model(X).sum().backward()
            use(model)
            optimizer.zero_grad()
            model(X).sum().backward()
            optimizer.step()

        evidence = watched(tmp_path / str(number), trained(loop, times=8))

        assert {h.marks for h in evidence.happenings if h.deed is Deed.CLEAR} == {marks}


def test_what_a_round_holds_is_bounded(tmp_path):
    def loop(model, optimizer):
        for number in range(200):
            model(X).sum().backward() if number % 2 else model(X).mean().backward()
            optimizer.zero_grad()
        optimizer.step()

    evidence = watched(tmp_path, trained(loop, times=2))

    assert all(each.cut_short for each in evidence.rounds if not each.unfinished)
    assert max(h.position for h in evidence.happenings) == 128


def test_a_nested_backward_pass_is_part_of_the_outer_one(tmp_path):
    def loop(model, optimizer):
        optimizer.zero_grad()
        torch.utils.checkpoint.checkpoint(model, X.clone().requires_grad_(), use_reentrant=True).sum().backward()
        optimizer.step()

    evidence = watched(tmp_path, trained(loop))

    assert rounds(evidence)[1] == (3, [("clear", (), 1), ("backward", ("input",), 1), ("step", (), 1)])


def test_a_closure_is_told_apart(tmp_path):
    def loop(model, optimizer):
        def closure():
            optimizer.zero_grad()
            loss = model(X).square().sum()
            loss.backward()
            return loss

        optimizer.step(closure)

    evidence = watched(tmp_path, trained(loop, lambda p: torch.optim.LBFGS(p, max_iter=3)))

    assert all(each.closure for each in evidence.rounds)


def test_schedulers_of_every_class_belong_to_their_optimizer_and_step_once(tmp_path):
    def plateau(optimizer):
        return torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer), (1.0,)

    def chained(optimizer):
        made = torch.optim.lr_scheduler
        parts = [made.ConstantLR(optimizer), made.ExponentialLR(optimizer, 0.9)]
        return made.ChainedScheduler(parts), ()

    def sequential(optimizer):
        made = torch.optim.lr_scheduler
        parts = [made.ConstantLR(optimizer), made.ExponentialLR(optimizer, 0.9)]
        return made.SequentialLR(optimizer, parts, milestones=[2]), ()

    for number, make in enumerate((plateau, chained, sequential)):

        def program(make=make):
            model = nn.Linear(3, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            scheduler, arguments = make(optimizer)
            for _ in range(4):
                model(X).sum().backward()
                optimizer.step()
                scheduler.step(*arguments)
            return model, type(scheduler).__name__

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            evidence = watched(tmp_path / str(number), program)

        (optimizer,) = evidence.optimizers
        assert optimizer.scheduler_steps == 4
        assert optimizer.scheduler == ("ReduceLROnPlateau", "ChainedScheduler", "SequentialLR")[number]
        assert optimizer.scheduler_stepped_at.function == "program"


def test_updates_by_hand_are_steps_in_a_program_that_once_had_an_optimizer(tmp_path):
    def program():
        model, offset = nn.Linear(3, 1), torch.zeros(1, requires_grad=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            model(X).sum().backward()
            optimizer.step()
        for _ in range(5):
            (offset - 1).square().sum().backward()
            with torch.no_grad():
                offset -= 0.1 * offset.grad
            offset.grad = None
        return model, offset

    evidence = watched(tmp_path, program)

    assert [step.optimizer for step in evidence.steps][:2] == [0, 0]
    assert {step.optimizer for step in evidence.steps[2:]} == {None}
    assert len(evidence.steps) >= 5


def test_a_loss_of_a_frozen_model_that_nobody_updates_is_no_step(tmp_path):
    def program():
        model, probe = nn.Linear(3, 1), torch.zeros(4, 3, requires_grad=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            model(X).sum().backward()
            optimizer.step()
            probe.grad = None
            probe.square().sum().backward()
        return model, probe

    evidence = watched(tmp_path, program)

    assert {step.optimizer for step in evidence.steps} == {0}


def test_iterators_of_parameters_that_were_used_before_are_noted(tmp_path):
    def states(model):
        used, begun, fresh = model.parameters(), model.parameters(), model.parameters()
        list(used)
        next(begun)
        chain = itertools.chain(model.parameters())
        list(chain)
        return used, begun, filter(torch.is_tensor, fresh), chain

    def program():
        model = nn.Linear(3, 1)
        used, begun, fresh, chain = states(model)
        torch.optim.SGD([{"params": used}, {"params": fresh}], lr=0.1)
        torch.optim.SGD(begun, lr=0.1)
        torch.optim.SGD([{"params": model.parameters()}, {"params": chain}], lr=0.1)
        return model

    evidence = watched(tmp_path, program)

    found = [(e.detail["left"], e.detail["group"]) for e in evidence.events_of("used_up_iterator")]
    assert found == [("nothing", 0), ("a rest", 0), ("nothing", 1)]


def test_the_gradient_of_an_output_is_that_of_the_loss_not_of_autograd_grad(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            x = X.clone().requires_grad_()
            out = model(x)
            (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
            optimizer.zero_grad()
            (out.mean() + slope.square().mean()).backward()
            optimizer.step()
        return model

    evidence = watched(tmp_path, program)

    assert [(output.calls, output.gradient_calls) for output in evidence.outputs] == [(3, 3)]
