"""What is fed into the loss: functions, numbers and shapes, of the calls that a backward pass leads back to."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.probe.watched import watched
from whygrad.probe.losses.shapes import is_outer, is_scrambled

X = torch.linspace(-2.0, 2.0, 32).reshape(8, 4)
W = nn.Parameter(torch.ones(8, 3))
LABELS = torch.arange(8) % 3


def trained(tmp_path, loss_of, model=None, steps=3):
    """Return the evidence of a few steps of a linear layer of three outputs, or of another model."""

    def program():
        torch.manual_seed(0)
        net = nn.Linear(4, 3) if model is None else model
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(steps):
            optimizer.zero_grad()
            loss_of(net(X)).backward()
            optimizer.step()
        return net

    return watched(tmp_path, program)


# -- losses ------------------------------------------------------------------------------------------------------------


def test_a_loss_is_recorded_with_its_numbers(tmp_path):
    evidence = trained(tmp_path, lambda out: F.cross_entropy(out.softmax(dim=1), LABELS))

    (call,) = evidence.losses
    assert (call.function, call.calls, call.shape, call.target_shape) == ("cross_entropy", 3, (8, 3), (8,))
    assert (call.activation, call.reduction, call.target_is_index) == ("softmax", "mean", True)
    assert 0 < call.low < call.high < 1
    assert (call.sum_low, call.sum_high) == (pytest.approx(1), pytest.approx(1))
    assert (call.target_low, call.target_high) == (0, 2)
    assert {evidence.parameters[number].name for number in call.parameters} == {"weight", "bias"}


def test_a_difference_written_by_hand_is_a_loss(tmp_path):
    target = torch.linspace(-3, 1, 24).reshape(8, 3)

    (call,) = trained(tmp_path, lambda out: ((target - out.relu()) ** 2).mean()).losses

    assert (call.function, call.activation) == ("sub", "relu")
    assert call.target_negative == pytest.approx(float((target < 0).float().mean()), abs=0.05)


def test_what_no_backward_pass_leads_back_to_is_left_out(tmp_path):
    def loss_of(out):
        F.l1_loss(out, torch.zeros(8, 3))
        return F.mse_loss(out, torch.zeros(8, 3))

    assert [call.function for call in trained(tmp_path, loss_of).losses] == ["mse_loss"]


def test_the_activation_is_found_behind_changes_of_shape_and_not_behind_a_scale(tmp_path):
    target = torch.zeros(24)

    def loss_of(out):
        straight = torch.sigmoid(out).unsqueeze(0).flatten()
        return F.mse_loss(straight, target) + F.l1_loss((10 * torch.tanh(out)).view(-1), target)

    found = {call.function: call.activation for call in trained(tmp_path, loss_of).losses}

    assert found == {"mse_loss": "sigmoid", "l1_loss": ""}


def test_the_place_of_an_activation_in_a_container_is_where_it_was_made(tmp_path):
    layers = [nn.Linear(4, 3)]
    layers.append(nn.Sigmoid())  # here

    (call,) = trained(tmp_path, lambda out: F.mse_loss(out, torch.zeros(8, 3)), nn.Sequential(*layers)).losses

    assert call.activation == "sigmoid"
    # `layers` is made before the session begins, so the line that ran it is all that is known
    assert call.activation_at is not None


def test_targets_of_a_model_are_told_from_targets_with_data(tmp_path):
    teacher = nn.Linear(4, 3)

    def loss_of(out):
        features = teacher(X).detach()
        return F.mse_loss(out, features) + F.l1_loss(out, X[:, :3] + 0.9 * features)

    found = {call.function: call.target_from_model for call in trained(tmp_path, loss_of).losses}

    assert found == {"mse_loss": True, "l1_loss": False}


def test_exotic_tensors_do_no_harm(tmp_path):
    def loss_of(out):
        spectrum = torch.fft.rfft(out, dim=1)
        sparse = (out * X[:, :3]).to_sparse()
        empty = F.mse_loss(out[:0], torch.zeros(0, 3), reduction="sum")
        huge = F.mse_loss(out + torch.inf, torch.zeros(8, 3))
        return (
            F.mse_loss(spectrum.abs(), torch.zeros(8, 2)) + torch.sparse.sum(sparse) + empty + 0 * huge.detach().isnan()
        )

    assert {call.function for call in trained(tmp_path, loss_of).losses} == {"mse_loss"}


def test_tensors_can_be_swapped(tmp_path):
    swapped = nn.Linear(4, 3)

    def loss_of(out):
        loss = F.cross_entropy(out, LABELS)
        torch.utils.swap_tensors(swapped.weight, nn.Parameter(torch.ones(3, 4)))
        return loss

    assert len(trained(tmp_path, loss_of).losses) == 1


# -- softmaxes ---------------------------------------------------------------------------------------------------------


USES = {
    (0, 1, "nll_loss"): lambda out: F.nll_loss(out.log_softmax(dim=0), LABELS),
    (1, 1, "gather"): lambda out: -out.log_softmax(1).gather(1, LABELS[:, None]).mean(),
    (1, 1, "getitem"): lambda out: -out.log_softmax(dim=-1)[torch.arange(8), LABELS].mean(),
    (0, 1, "target"): lambda out: -(F.one_hot(LABELS, 3).float() * out.softmax(0).log()).sum(1).mean(),
    (1, 1, "sum"): lambda out: (out.softmax(dim=1).unsqueeze(-1) * X[:, :3, None]).sum(dim=1).mean(),
    (0, 0, "product"): lambda out: (out.softmax(dim=0).T @ X).pow(2).mean(),
    (1, 0, "product"): lambda out: torch.einsum("nk,nd->kd", out.softmax(dim=1), X).pow(2).mean(),
    (0, 1, "renormalised"): lambda out: torch.distributions.Categorical(out.softmax(0)).log_prob(LABELS).mean(),
}


@pytest.mark.parametrize("case", USES, ids=str)
def test_it_is_seen_along_which_dimension_a_softmax_is_used_up(tmp_path, case):
    dim, *used = case

    (call,) = trained(tmp_path, USES[case]).softmaxes

    assert (call.dim, call.calls, call.batch) == (dim, 3, 8)
    assert tuple(used) in zip(call.used_dims, call.used_by, strict=True)


def test_the_parameters_of_the_layer_in_front_are_told_from_those_further_up(tmp_path):
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))

    evidence = trained(tmp_path, lambda out: F.nll_loss(out.log_softmax(dim=1), LABELS), model)

    (call,) = evidence.softmaxes
    assert {evidence.parameters[number].name for number in call.nearest} == {"2.weight", "2.bias"}
    assert len(call.parameters) == 4


# -- shapes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((16, 5, 64), (16, 64, 5)),
        ((8, 3, 32, 32), (8, 32, 32, 3)),
        ((8, 16, 7, 7), (8, 49, 16)),
        ((8, 49, 16), (8, 16, 7, 7)),
        ((8, 10, 32), (8, 4, 10, 8)),
        ((8, 4, 10, 8), (8, 10, 32)),
        ((2, 24, 14), (24, 28)),
        ((6, 24, 14), (24, 6, 14)),
        ((8, 5, 64), (512, 5)),
        ((8, 5, 8, 8), (512, 5)),
        ((4, 6), (6, 4)),
    ],
)
def test_reshapes_that_would_have_to_move_a_dimension(before, after):
    assert is_scrambled(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((16, 64, 5), (1024, 5)),
        ((16, 64, 5), (16, 320)),
        ((16, 320), (16, 64, 5)),
        ((8, 10, 32), (8, 10, 4, 8)),
        ((8, 3, 8, 10), (8, 3, 4, 2, 5, 2)),
        ((8, 4, 2, 5, 2, 3), (8, 8, 10, 3)),
        ((8, 5, 5), (8, 5, 5)),
        ((4, 24), (24, 4)),
        ((8, 1, 20), (8, 20, 1)),
        ((60,), (3, 4, 5)),
        ((8, 12, 4), (24, 16)),
        ((8, 5, 10), (80, 5)),
        ((0, 4, 5), (0, 5, 4)),
    ],
)
def test_reshapes_that_keep_the_order(before, after):
    assert not is_scrambled(before, after)


@pytest.mark.parametrize(
    ("one", "other"), [((8, 1), (8,)), ((8,), (8, 1)), ((8, 1, 5, 5), (8, 5, 5)), ((3, 3, 1), (3, 3))]
)
def test_samples_are_spread_over_samples(one, other):
    assert is_outer(one, other)


@pytest.mark.parametrize(
    ("one", "other"), [((8, 1), (1, 8)), ((8, 1), (5,)), ((8, 5), (8,)), ((1, 1), (1,)), ((8, 1), ()), ((8, 3), (3,))]
)
def test_other_broadcasts(one, other):
    assert not is_outer(one, other)


def events_of(tmp_path, kind, loss_of, model=None):
    return trained(tmp_path, loss_of, model).events_of(kind)


def test_a_matrix_by_broadcasting_is_noted_where_nothing_treats_it_as_one(tmp_path):
    flat, one = X.sum(dim=1), nn.Linear(4, 1)

    (event,) = events_of(tmp_path, "outer_broadcast", lambda out: (out - flat).abs().mean(), one)

    assert (event.subject, event.count, event.detail["result"]) == ("sub", 3, [8, 8])


PAIRWISE = {
    "reduced along a dimension": lambda out: (out - X.sum(dim=1)).logsumexp(dim=1).mean(),
    "combined with a matrix": lambda out: ((out - X.sum(dim=1)) * torch.eye(8)).mean(),
    "made a column on the line": lambda out: (out.squeeze(-1)[:, None] - out.squeeze(-1)).relu().mean(),
    "of the same values": lambda out: (out - out.squeeze(-1)).relu().mean(),
    "no matrix at all": lambda out: (out.squeeze(-1) - X.sum(dim=1)).abs().mean(),
}


@pytest.mark.parametrize("loss_of", PAIRWISE.values(), ids=PAIRWISE)
def test_a_matrix_that_is_treated_as_one_is_meant(tmp_path, loss_of):
    assert not events_of(tmp_path, "outer_broadcast", loss_of, nn.Linear(4, 1))


def test_a_reshape_that_is_taken_back_is_not_noted(tmp_path):
    def loss_of(out):
        scrambled = out.view(3, 8)
        return F.mse_loss(scrambled.flatten(), torch.zeros(24))

    assert not events_of(tmp_path, "scrambled_reshape", loss_of)


def test_a_reshape_of_prediction_and_target_alike_is_not_noted(tmp_path):
    target = torch.zeros(8, 3) + X[:, :3]

    assert not events_of(tmp_path, "scrambled_reshape", lambda out: F.mse_loss(out.view(3, 8), target.view(3, 8)))


def test_classes_made_last_right_before_the_loss_are_noted(tmp_path):
    labels = torch.zeros(64, dtype=torch.long)

    def loss_of(out):
        scores = out[:, :, None].expand(-1, -1, 8)[:, :2]
        return F.cross_entropy(scores.reshape(-1, 2), labels)

    (event,) = events_of(tmp_path, "scrambled_reshape", loss_of)

    assert (event.subject, event.detail["after"]) == ("reshape", [64, 2])


def test_a_reshape_of_weights_is_not_noted(tmp_path):
    assert not events_of(tmp_path, "scrambled_reshape", lambda out: out.sum() + (X[:3, :3] @ W.view(3, 8)).mean())


def test_a_factor_of_zeros_is_noted_where_it_was_made(tmp_path):
    (event,) = events_of(tmp_path, "zero_factor", lambda out: (out * (X[:, :3] > 9).float()).sum())

    assert (event.subject, event.count, event.detail["shape"]) == ("float", 3, [8, 3])


def test_a_normalisation_of_single_numbers_is_noted(tmp_path):
    events = events_of(tmp_path, "unit_normalisation", lambda out: F.normalize(out.unsqueeze(1), dim=1).sum())

    assert [(event.subject, event.detail["dim"]) for event in events] == [("normalize", 1)]
