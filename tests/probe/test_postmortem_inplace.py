"""Errors about writes in place: which tensor, made where, written where."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.probe.postmortems import code, explained

X = torch.linspace(-1, 1, 24).reshape(8, 3)


class Block(nn.Module):
    """Convolution, normalisation, activation and a residual, with an activation that writes in place."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 3, padding=1)
        self.norm = nn.BatchNorm1d(2)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        gate = torch.sigmoid(self.norm(self.conv(x)))
        out = x * gate
        self.act(gate)
        return out + gate


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(4, 12)

    def forward(self, x, mask):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        weights = torch.softmax(q @ k.mT, dim=-1)
        weights[..., mask] = 0
        return weights @ v


def test_an_operator_that_writes_in_place(tmp_path):
    def program():
        layer = nn.Linear(3, 3)
        h = torch.tanh(layer(X))
        y = h.exp()
        h += 1
        (y + h).sum().backward()

    raised = explained(tmp_path, program)

    assert ("modified-inplace", "h", "add_") == (raised.reason, raised.tensor, raised.operation)
    assert code(raised.made_at) == "h = torch.tanh(layer(X))"
    assert code(raised.changed_at) == "h += 1"
    assert code(raised.place) == "(y + h).sum().backward()"


def test_an_activation_module_that_writes_in_place(tmp_path):
    block = Block()

    def program():
        block(torch.linspace(-1, 1, 16).reshape(2, 2, 4)).sum().backward()

    raised = explained(tmp_path, program)

    assert ("gate", "relu") == (raised.tensor, raised.operation)
    assert code(raised.made_at) == "gate = torch.sigmoid(self.norm(self.conv(x)))"
    assert code(raised.changed_at) == "self.act(gate)"


def test_a_mask_written_into_what_softmax_saved(tmp_path):
    attention = Attention()

    def program():
        attention(torch.ones(2, 5, 4), torch.tensor([0, 3])).sum().backward()

    raised = explained(tmp_path, program)

    assert ("modified-inplace", "weights", "setitem") == (raised.reason, raised.tensor, raised.operation)
    assert code(raised.made_at) == "weights = torch.softmax(q @ k.mT, dim=-1)"
    assert code(raised.changed_at) == "weights[..., mask] = 0"


def test_the_first_write_after_the_value_was_saved_is_named_not_the_ones_before(tmp_path):
    def program():
        layer = nn.Linear(3, 3)
        h = layer(X)
        h -= 1
        h *= 2
        y = torch.sigmoid(h) * h
        h.clamp_(min=0)
        h.add_(3)
        (y + h).sum().backward()

    raised = explained(tmp_path, program)

    assert ("h", "clamp_", "h.clamp_(min=0)") == (raised.tensor, raised.operation, code(raised.changed_at))


def test_a_hidden_state_updated_in_place_over_time(tmp_path):
    def program():
        cell = nn.Linear(3, 3)
        state = torch.zeros(8, 3)
        for _ in range(3):
            change = torch.tanh(cell(state))
            state += change
        state.sum().backward()

    raised = explained(tmp_path, program)

    assert ("modified-inplace", "state", "add_") == (raised.reason, raised.tensor, raised.operation)
    assert code(raised.changed_at) == "state += change"


def test_a_write_through_a_view_and_through_detach(tmp_path):
    def through_view():
        h = torch.exp(nn.Linear(3, 3)(X))
        row = h[0]
        row.zero_()
        h.sum().backward()

    def through_detach():
        h = torch.exp(nn.Linear(3, 3)(X))
        h.detach().mul_(2)
        h.sum().backward()

    by_view, by_detach = explained(tmp_path / "a", through_view), explained(tmp_path / "b", through_detach)

    assert ("zero_", "row.zero_()") == (by_view.operation, code(by_view.changed_at))
    assert ("mul_", "h.detach().mul_(2)") == (by_detach.operation, code(by_detach.changed_at))
    assert by_view.tensor == by_detach.tensor == "h"
    assert code(by_view.made_at) == code(by_detach.made_at) == "h = torch.exp(nn.Linear(3, 3)(X))"


def test_an_optimizer_that_steps_between_forward_and_backward(tmp_path):
    """A GAN's generator loss that was computed with the discriminator as it was before its step."""

    class Gan:
        def __init__(self):
            self.generator, self.critic = nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
            self.g_optimizer = torch.optim.Adam(self.generator.parameters())
            self.d_optimizer = torch.optim.Adam(self.critic.parameters())

        def train(self):
            fake = self.generator(X)
            score = self.critic(fake)
            score.mean().backward(retain_graph=True)
            self.d_optimizer.step()
            self.g_optimizer.zero_grad()
            (-score.mean()).backward()

    gan = Gan()

    raised = explained(tmp_path, gan.train)

    assert ("modified-inplace", "step") == (raised.reason, raised.operation)
    assert raised.tensor in ("critic.2.weight", "critic.0.weight")
    assert code(raised.made_at) == "score = self.critic(fake)"
    assert code(raised.changed_at) == "self.d_optimizer.step()"
    assert code(raised.place) == "(-score.mean()).backward()"


def test_weights_clamped_by_hand_before_backward(tmp_path):
    def program():
        critic = nn.Linear(3, 1)
        optimizer = torch.optim.RMSprop(critic.parameters())
        loss = critic(X.clone().requires_grad_()).mean()
        with torch.no_grad():
            for weight in critic.parameters():
                weight.clamp_(-0.01, 0.01)
        loss.backward()
        return optimizer

    raised = explained(tmp_path, program)

    assert ("weight", "clamp_") == (raised.tensor, raised.operation)
    assert code(raised.changed_at) == "weight.clamp_(-0.01, 0.01)"
    assert code(raised.made_at) == "loss = critic(X.clone().requires_grad_()).mean()"


def test_a_tensor_without_grad_that_backward_needs(tmp_path):
    def program():
        scale = torch.ones(3)
        y = nn.Linear(3, 3)(X) * scale
        scale.mul_(2)
        y.sum().backward()

    raised = explained(tmp_path, program)

    assert ("scale", "mul_", "scale.mul_(2)") == (raised.tensor, raised.operation, code(raised.changed_at))


def test_a_value_saved_by_an_autograd_function(tmp_path):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, gradient):
            (x,) = ctx.saved_tensors
            return 2 * x * gradient

    def program():
        h = nn.Linear(3, 3)(X).neg()
        y = Square.apply(h)
        h.mul_(3)
        (y.sum() + h.sum()).backward()

    raised = explained(tmp_path, program)

    assert ("h", "mul_", "h.mul_(3)") == (raised.tensor, raised.operation, code(raised.changed_at))
    assert code(raised.made_at) == "h = nn.Linear(3, 3)(X).neg()"


def test_one_of_several_layers_that_look_alike(tmp_path):
    def program():
        layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(4)])
        x = X
        for index, layer in enumerate(layers):
            x = torch.tanh(layer(x))
            if index == 1:
                late = x.exp()
                x.mul_(2)
        (x + late).sum().backward()

    raised = explained(tmp_path, program)

    assert ("mul_", "x.mul_(2)") == (raised.operation, code(raised.changed_at))
    assert code(raised.made_at) == "x = torch.tanh(layer(x))"


def test_a_write_into_one_of_several_views(tmp_path):
    def program():
        q, _ = nn.Linear(3, 6)(X).chunk(2, dim=1)
        q *= 3**-0.5

    raised = explained(tmp_path, program)

    assert ("modified-inplace", "q") == (raised.reason, raised.tensor)
    assert code(raised.made_at) == "q, _ = nn.Linear(3, 6)(X).chunk(2, dim=1)"
    assert code(raised.changed_at) == code(raised.place) == "q *= 3**-0.5"


@pytest.mark.parametrize("write", ["view", "index", "whole"])
def test_a_write_into_a_leaf(tmp_path, write):
    def of_view():
        layer = nn.Linear(3, 4)
        rows = layer.bias.view(2, 2)
        rows += 1

    def of_index():
        layer = nn.Linear(3, 4)
        layer.bias[0] = 1

    def of_whole():
        layer = nn.Linear(3, 4)
        layer.bias.fill_(1)

    program = {"view": of_view, "index": of_index, "whole": of_whole}[write]

    raised = explained(tmp_path, program)

    assert ("inplace-on-leaf", "bias") == (raised.reason, raised.tensor)
    assert raised.place.code in ("rows += 1", "layer.bias[0] = 1", "layer.bias.fill_(1)")
    assert code(raised.made_at) == ("rows = layer.bias.view(2, 2)" if write == "view" else "layer = nn.Linear(3, 4)")


def test_an_update_by_hand_names_the_attribute_that_holds_the_leaf_not_the_loop_variable(tmp_path):
    class Fit:
        def __init__(self):
            self.rate = torch.tensor(0.5, requires_grad=True)

        def descend(self):
            for value in [self.rate]:
                value.sub_(0.1 * value.grad)

    def program():
        fit = Fit()
        fit.rate.exp().backward()
        fit.descend()

    raised = explained(tmp_path, program)

    assert ("inplace-on-leaf", "rate") == (raised.reason, raised.tensor)
    assert code(raised.place) == "value.sub_(0.1 * value.grad)"


def test_a_leaf_written_by_a_library_function(tmp_path):
    def program():
        noise = torch.ones(3, requires_grad=True)
        F.relu(noise, inplace=True)

    raised = explained(tmp_path, program)

    assert ("inplace-on-leaf", "noise") == (raised.reason, raised.tensor)
    assert code(raised.place) == "F.relu(noise, inplace=True)"


def test_after_the_traced_steps_the_step_of_the_optimizer_is_still_known(tmp_path):
    def program():
        model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(5):
            model(X).mean().backward()
            optimizer.step()
        loss = model(X).mean()
        loss.backward(retain_graph=True)
        optimizer.step()
        loss.backward()

    raised = explained(tmp_path, program)

    assert ("modified-inplace", "2.weight", "step") == (raised.reason, raised.tensor, raised.operation)
    assert code(raised.changed_at) == "optimizer.step()"
    assert raised.made_at is None


def test_after_the_traced_steps_what_does_not_show_is_left_open(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(5):
            model(X).mean().backward()
            optimizer.step()
        h = torch.tanh(model(X))
        h += 1
        h.mul_(2).sum().backward()

    raised = explained(tmp_path, program)

    assert ("modified-inplace", "h", "") == (raised.reason, raised.tensor, raised.operation)
    assert raised.changed_at is raised.made_at is None


class Late(nn.Module):
    """Its later steps, which no tracer sees any more, write in place."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 3), nn.Linear(3, 1)
        self.step = 0

    def forward(self, x):
        h = torch.tanh(self.body(x))
        self.step += 1
        return self.head(self.changed(h) if self.step > 5 else h).mean()

    def changed(self, h):
        raise NotImplementedError


def train(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(8):
        model(X).backward()
        optimizer.step()


def test_after_the_traced_steps_the_only_line_of_the_source_that_fits_is_named(tmp_path):
    class Masked(Late):
        def changed(self, h):
            h[:, 0] = 0
            h = h * 2
            return h.neg()

    raised = explained(tmp_path, lambda: train(Masked()))

    assert ("modified-inplace", "h", "h[:, 0] = 0") == (raised.reason, raised.tensor, code(raised.changed_at))


def test_after_the_traced_steps_no_line_is_named_where_two_fit(tmp_path):
    class Masked(Late):
        def changed(self, h):
            h.mul_(2)
            return h

        def unused(self, h):
            h *= 3
            return h

    raised = explained(tmp_path, lambda: train(Masked()))

    assert ("modified-inplace", None) == (raised.reason, raised.changed_at)


def test_after_the_traced_steps_a_module_that_writes_in_place_is_a_suspect(tmp_path):
    class Clipped(Late):
        def __init__(self):
            super().__init__()
            self.clip = nn.ReLU(inplace=True)

        def changed(self, h):
            return self.clip(h)

    raised = explained(tmp_path, lambda: train(Clipped()))

    assert ("modified-inplace", "") == (raised.reason, raised.tensor)
    assert code(raised.changed_at) == "self.clip = nn.ReLU(inplace=True)"
