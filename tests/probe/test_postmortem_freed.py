"""Backward through a graph that was freed: what was kept, made where, and used up where."""

from collections import deque

import torch
import torch.nn.functional as F
from torch import nn

from tests.probe.postmortems import code, explained

X = torch.linspace(-1, 1, 24).reshape(8, 3)
SEQUENCE = torch.linspace(-1, 1, 30).reshape(5, 2, 3)


def sgd(*modules):
    return torch.optim.SGD([p for module in modules for p in module.parameters()], lr=0.1)


def assert_kept(raised, tensor, made):
    """The tensor outlived the step that used its graph up, so the line that made it is named."""
    assert ("graph-freed", tensor, made) == (raised.reason, raised.tensor, code(raised.made_at))
    assert code(raised.changed_at) == code(raised.place)


def assert_shared(raised, tensor, first, second):
    """Two passes of one step share the tensor, so nothing is said against the line that made it."""
    assert ("graph-freed", tensor) == (raised.reason, raised.tensor)
    assert raised.made_at is None
    assert (code(raised.changed_at), code(raised.place)) == (first, second)


def test_a_value_computed_once_before_the_loop(tmp_path):
    def program():
        encoder, head = nn.Linear(3, 3), nn.Linear(3, 1)
        optimizer = sgd(encoder, head)
        cached = encoder(X).relu()
        for _ in range(3):
            head(cached).mean().backward()
            optimizer.step()

    raised = explained(tmp_path, program)

    assert_kept(raised, "cached", "cached = encoder(X).relu()")
    assert raised.operation == "relu"


def test_a_hidden_state_carried_over(tmp_path):
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.out = nn.GRU(3, 4), nn.Linear(4, 1)

        def forward(self, x, hidden):
            seen, hidden = self.rnn(x, hidden)
            return self.out(seen), hidden

    def program():
        model = Recurrent()
        optimizer = sgd(model)
        hidden = None
        for _ in range(3):
            y, hidden = model(SEQUENCE, hidden)
            y.mean().backward()
            optimizer.step()

    raised = explained(tmp_path, program)

    assert_kept(raised, "hidden", "seen, hidden = self.rnn(x, hidden)")


def test_the_state_of_a_cell_kept_on_the_module(tmp_path):
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.LSTMCell(3, 4)
            self.state = None

        def forward(self, x):
            self.state = self.cell(x, self.state)
            return self.state[0]

    def program():
        model = Recurrent()
        optimizer = sgd(model)
        for _ in range(3):
            model(X).mean().backward()
            optimizer.step()

    raised = explained(tmp_path, program)

    assert_kept(raised, "state", "self.state = self.cell(x, self.state)")


def test_a_loss_summed_up_over_iterations(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        optimizer = sgd(model)
        total = torch.zeros(())
        for _ in range(3):
            total = total + model(X).pow(2).mean()
            total.backward()
            optimizer.step()

    raised = explained(tmp_path, program)

    assert_kept(raised, "total", "total = total + model(X).pow(2).mean()")


def test_losses_collected_in_a_list(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        optimizer = sgd(model)
        losses = []
        for _ in range(3):
            losses.append(model(X).exp().mean())
            torch.stack(losses).sum().backward()
            optimizer.step()

    raised = explained(tmp_path, program)

    assert_kept(raised, "losses", "losses.append(model(X).exp().mean())")


def test_values_with_a_history_in_a_replay_buffer(tmp_path):
    class Agent:
        def __init__(self):
            self.net = nn.Linear(3, 2)
            self.optimizer = sgd(self.net)
            self.memory = deque(maxlen=10)

        def learn(self, x):
            value = torch.tanh(self.net(x))
            self.memory.append(value)
            torch.stack(list(self.memory)).mean().backward()
            self.optimizer.step()

    def program():
        agent = Agent()
        for x in (X, X, X):
            agent.learn(x)

    raised = explained(tmp_path, program)

    assert_kept(raised, "memory", "value = torch.tanh(self.net(x))")


def test_a_prototype_averaged_over_iterations(tmp_path):
    class Clusters(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(3, 2)
            self.register_buffer("centre", torch.zeros(2))

        def forward(self, x):
            z = self.net(x).sigmoid()
            self.centre = 0.9 * self.centre + 0.1 * z.mean(0)
            return (z - self.centre).pow(2).mean()

    def program():
        model = Clusters()
        optimizer = sgd(model)
        for _ in range(3):
            model(X).backward()
            optimizer.step()

    raised = explained(tmp_path, program)

    assert_kept(raised, "centre", "self.centre = 0.9 * self.centre + 0.1 * z.mean(0)")


def test_two_losses_that_share_a_forward(tmp_path):
    def program():
        encoder, left, right = nn.Linear(3, 3), nn.Linear(3, 1), nn.Linear(3, 1)
        optimizer = sgd(encoder, left, right)
        for _ in range(2):
            code = encoder(X).tanh()
            first, second = left(code).mean(), right(code).mean()
            first.backward()
            second.backward()
            optimizer.step()

    raised = explained(tmp_path, program)

    assert_shared(raised, "code", "first.backward()", "second.backward()")


def test_terms_that_go_backward_one_by_one_in_a_loop(tmp_path):
    def program():
        encoder = nn.Linear(3, 3)
        z = encoder(X).exp()
        for term in (z.mean(), z.pow(2).mean()):
            (2 * term).backward()

    raised = explained(tmp_path, program)

    assert_shared(raised, "z", "(2 * term).backward()", "(2 * term).backward()")


def test_a_fake_that_the_discriminator_did_not_detach(tmp_path):
    def program():
        generator, critic = nn.Linear(3, 3), nn.Linear(3, 1)
        g_optimizer, d_optimizer = sgd(generator), sgd(critic)
        fake = generator(X).tanh()
        d_loss = F.softplus(critic(fake)).mean()
        d_loss.backward()
        d_optimizer.step()
        g_loss = -critic(fake).mean()
        g_loss.backward()
        g_optimizer.step()

    raised = explained(tmp_path, program)

    assert_shared(raised, "fake", "d_loss.backward()", "g_loss.backward()")


def test_the_same_loss_twice(tmp_path):
    def program():
        loss = nn.Linear(3, 1)(X).pow(2).mean()
        loss.backward()
        loss.backward()

    raised = explained(tmp_path, program)

    assert ("graph-freed", "loss") == (raised.reason, raised.tensor)
    assert raised.made_at is None
    assert raised.changed_at.line == raised.place.line - 1


def test_a_gradient_taken_before_backward(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        loss = model(X).pow(2).mean()
        (gradient,) = torch.autograd.grad(loss, [model.weight])
        (loss + gradient.sum()).backward()

    raised = explained(tmp_path, program)

    assert_shared(
        raised,
        "loss",
        "(gradient,) = torch.autograd.grad(loss, [model.weight])",
        "(loss + gradient.sum()).backward()",
    )


def test_a_graph_kept_for_a_second_pass_is_not_blamed_on_the_first(tmp_path):
    def program():
        z = nn.Linear(3, 3)(X).exp()
        z.mean().backward(retain_graph=True)
        z.sum().backward()
        z.max().backward()

    raised = explained(tmp_path, program)

    assert_shared(raised, "z", "z.sum().backward()", "z.max().backward()")


def test_a_loop_without_an_optimizer(tmp_path):
    def program():
        weight = torch.ones(3, requires_grad=True)
        scale = weight.exp()
        for _ in range(2):
            (X * scale).sum().backward()
            with torch.no_grad():
                weight -= 0.1 * weight.grad

    raised = explained(tmp_path, program)

    assert_kept(raised, "scale", "scale = weight.exp()")


def test_a_gradient_of_a_gradient_keeps_its_graph_and_is_not_blamed(tmp_path):
    def program():
        net = nn.Linear(3, 1)
        optimizer = sgd(net)
        outer = torch.zeros(())
        for _ in range(2):
            inner = net(X).pow(2).mean()
            gradients = torch.autograd.grad(inner, list(net.parameters()), create_graph=True)
            fast = [w - 0.1 * g for w, g in zip(net.parameters(), gradients, strict=True)]
            outer = outer + F.linear(X, *fast).pow(2).mean()
            outer.backward()
            optimizer.step()

    raised = explained(tmp_path, program)

    assert_kept(raised, "outer", "outer = outer + F.linear(X, *fast).pow(2).mean()")


def test_an_error_raised_anew_keeps_its_reason(tmp_path):
    def program():
        loss = nn.Linear(3, 1)(X).exp().mean()
        loss.backward()
        try:
            loss.backward()
        except RuntimeError as error:
            raise ValueError("training failed") from error  # noqa: EM101, TRY003 - as programs do

    raised = explained(tmp_path, program)

    assert ("ValueError", "training failed") == (raised.type, raised.message)
    assert ("graph-freed", "loss", "loss.backward()") == (raised.reason, raised.tensor, code(raised.place))


def test_after_the_traced_steps_a_kept_tensor_is_still_told_from_the_order_of_the_nodes(tmp_path):
    def program():
        encoder, head = nn.Linear(3, 3), nn.Linear(3, 1)
        optimizer = sgd(encoder, head)
        cached = X
        for step in range(8):
            if step == 5:
                cached = encoder(X).relu()
            head(cached).exp().mean().backward()
            optimizer.step()

    raised = explained(tmp_path, program)

    assert ("graph-freed", "cached", None) == (raised.reason, raised.tensor, raised.made_at)
    assert code(raised.changed_at) == "head(cached).exp().mean().backward()"


def test_after_the_traced_steps_the_first_pass_is_left_open_where_it_could_be_either_of_two(tmp_path):
    def program():
        encoder, head, other = nn.Linear(3, 3), nn.Linear(3, 1), nn.Linear(3, 1)
        optimizer = sgd(encoder, head, other)
        for _ in range(5):
            other(X).mean().backward()
            optimizer.step()
        cached = encoder(X).exp()
        head(cached).mean().backward()
        other(X).exp().mean().backward()
        head(cached).mean().backward()

    raised = explained(tmp_path, program)

    assert ("graph-freed", None) == (raised.reason, raised.changed_at)


def test_checkpointed_layers_are_not_run_again_to_look_at_what_they_saved(tmp_path):
    runs = []

    class Counting(nn.Linear):
        def forward(self, x):
            runs.append(1)
            return super().forward(x).exp()

    def program():
        layer = Counting(3, 3)
        kept = layer(X)
        kept.mean().backward()
        runs.clear()
        again = torch.utils.checkpoint.checkpoint(layer, kept, use_reentrant=False)
        again.mean().backward()

    raised = explained(tmp_path, program)

    assert ("graph-freed", "kept") == (raised.reason, raised.tensor)
    assert len(runs) == 2
