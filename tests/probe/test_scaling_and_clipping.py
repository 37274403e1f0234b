"""Loss scales and clipping are told from what the program computed, and change nothing of it."""

import math

import pytest
import torch
from torch import nn

from tests.probe.watched import watched
from whygrad.model import Deed, Role

X = torch.ones(4, 3)


def with_scaler(loop, *, init_scale=1024.0, times=4, enabled=True):
    def program():
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        scaler = torch.amp.GradScaler("cpu", init_scale=init_scale, enabled=enabled)
        losses = []
        for _ in range(times):
            optimizer.zero_grad()
            loss = (model(X) - 1).square().mean()
            losses.append(loss.item())
            loop(optimizer, scaler, loss)
        program.losses = losses
        return model

    return program


def usual(optimizer, scaler, loss):
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()


def deeds(evidence):
    return [(h.deed.value, h.marks) for h in evidence.happenings if h.round == 0]


def test_losses_and_gradients_are_shown_unscaled(tmp_path):
    program = with_scaler(usual)

    evidence = watched(tmp_path, program)

    assert [step.loss for step in evidence.steps] == pytest.approx(program.losses)
    assert all(step.backward_l2 == pytest.approx(step.gradient_l2) for step in evidence.steps)
    assert deeds(evidence) == [("clear", ()), ("backward", ("scaled",)), ("unscale", ()), ("step", ())]


def test_a_loss_that_is_divided_after_it_was_scaled_is_still_scaled(tmp_path):
    def loop(optimizer, scaler, loss):
        (scaler.scale(loss) / 2).backward()
        scaler.step(optimizer)
        scaler.update()

    program = with_scaler(loop)

    evidence = watched(tmp_path, program)

    assert [2 * step.loss for step in evidence.steps] == pytest.approx(program.losses)


def test_a_scaler_that_is_off_marks_nothing(tmp_path):
    evidence = watched(tmp_path, with_scaler(usual, enabled=False))

    assert deeds(evidence) == [("clear", ()), ("backward", ()), ("step", ())]


def test_a_step_that_is_left_out_ends_its_round(tmp_path):
    def loop(optimizer, scaler, loss):
        usual(optimizer, scaler, loss * (math.inf if scaler.get_scale() > 1000 else 1.0))

    evidence = watched(tmp_path, with_scaler(loop, times=3))  # the scale is halved after the first

    (optimizer,) = evidence.optimizers
    ends = [h.deed for h in evidence.happenings if h.deed in (Deed.STEP, Deed.SKIP)]
    assert (optimizer.skipped, optimizer.steps) == (1, 2)
    assert Deed.SKIP in ends


def test_a_step_by_hand_on_scaled_gradients_shows_no_unscale(tmp_path):
    def loop(optimizer, scaler, loss):
        scaler.scale(loss).backward()
        optimizer.step()

    evidence = watched(tmp_path, with_scaler(loop))

    assert deeds(evidence) == [("clear", ()), ("backward", ("scaled",)), ("step", ())]
    first = evidence.steps[0]
    assert first.gradient_l2 == pytest.approx(1024 * first.backward_l2)


def test_a_fused_kernel_unscales_by_itself(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        for _ in range(3):
            optimizer.zero_grad()
            usual(optimizer, scaler, model(X).square().mean())
        return model

    evidence = watched(tmp_path, program)

    assert ("unscale", ()) in deeds(evidence)


def clipping(clip, scale=1.0):
    def program():
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(4):
            optimizer.zero_grad()
            (scale * model(X).sum()).backward()
            clip(model)
            optimizer.step()
        return model

    return program


def test_the_norm_before_clipping_and_the_limit_are_kept(tmp_path):
    evidence = watched(tmp_path, clipping(lambda model: nn.utils.clip_grad_norm_(model.parameters(), 0.5)))

    (clip,) = evidence.clips
    norm = math.sqrt(3 * 4**2 + 4**2)  # four rows of ones; the bias counts them
    assert (clip.kind, clip.optimizers, clip.calls, clip.clipped, clip.limit) == ("norm", (0,), 4, 4, 0.5)
    assert clip.norm == pytest.approx(norm)
    assert clip.factor == pytest.approx(norm / 0.5)
    first = evidence.steps[0]
    assert (first.backward_l2, first.gradient_l2) == pytest.approx((norm, 0.5), rel=1e-4)


def test_a_limit_that_is_not_reached_clips_nothing(tmp_path):
    evidence = watched(tmp_path, clipping(lambda model: nn.utils.clip_grad_norm_(model.parameters(), 100.0)))

    assert [(clip.clipped, clip.factor) for clip in evidence.clips] == [(0, 1.0)]


def test_clipping_values_is_seen_between_backward_and_step(tmp_path):
    evidence = watched(tmp_path, clipping(lambda model: nn.utils.clip_grad_value_(model.parameters(), 0.1)))

    (clip,) = evidence.clips
    assert (clip.kind, clip.optimizers, clip.measured) == ("value", (0,), 0)
    assert evidence.steps[0].gradient_l2 == pytest.approx(0.2)


def test_an_iterator_that_was_used_up_is_told_from_an_empty_list(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        once = model.parameters()
        optimizer = torch.optim.SGD(once, lr=0.01)
        for _ in range(3):
            model(X).sum().backward()
            nn.utils.clip_grad_norm_(filter(torch.is_tensor, once), 1.0)
            nn.utils.clip_grad_norm_([], 1.0)
            optimizer.step()
        return model

    evidence = watched(tmp_path, program)

    assert [(clip.empty_calls, clip.used_up) for clip in evidence.clips] == [(3, 3), (3, 0)]


def test_clipping_is_the_same_function_with_the_same_warning(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        once = model.parameters()
        list(once)
        with pytest.warns(UserWarning, match="empty generator") as caught:
            nn.utils.clip_grad_norm_(once, 1.0)
        program.blamed = caught[0].filename
        return model

    before = nn.utils.clip_grad_norm_
    watched(tmp_path, program)

    assert nn.utils.clip_grad_norm_ is before
    assert program.blamed == __file__


def test_the_constant_in_front_of_a_mean_loss_is_read_from_its_graph(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            (model(X).square().mean() / 4).backward()
            ((model(X).square().mean() + 0.01 * model.weight.square().mean()) * 0.5).backward()
            model(X).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        return model

    evidence = watched(tmp_path, program)

    assert [(scale.factor, scale.mean) for scale in evidence.loss_scales] == [(0.25, True), (0.5, True), (1.0, False)]


def test_each_gradient_is_recorded_as_backward_left_it_and_as_the_step_uses_it(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(X).sum().backward()
        nn.utils.clip_grad_value_(model.parameters(), 1.0)
        optimizer.step()
        return model

    evidence = watched(tmp_path, program)

    weight, bias = evidence.parameters
    left, used = (evidence.matrices.read(0, role) for role in (Role.BACKWARD, Role.GRADIENT))
    assert (left[weight.id].l2, left[bias.id].l2) == pytest.approx((4 * math.sqrt(3), 4))
    assert (used[weight.id].l2, used[bias.id].l2) == pytest.approx((math.sqrt(3), 1))
    assert left[weight.id].count == 3


@pytest.mark.parametrize("loss", [{"label_smoothing": 0.05}, {"ignore_index": -1}, {}])
def test_what_a_loss_multiplies_by_itself_does_not_stop_the_watch(tmp_path, loss):
    def program():
        model = nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(torch.ones(5, 4)), torch.zeros(5, dtype=torch.int64), **loss).backward()
            optimizer.step()
        return model

    evidence = watched(tmp_path, program)  # which asserts that no part failed

    assert [round_.count for round_ in evidence.rounds]
