"""What is fed: constancy, size and spread of data, and the line that made it."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.probe.watched import watched


def train(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in batches:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def feeds(folder, program):
    return {(feed.kind, feed.name): feed for feed in watched(folder, program, every=1).feeds}


def test_data_is_seen_at_the_model_at_its_first_layer_and_at_the_loss(tmp_path):
    def program():
        batches = [(torch.randn(16, 3), torch.randn(16, 2)) for _ in range(4)]
        return train(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), batches)

    seen = feeds(tmp_path, program)

    assert set(seen) == {("model", "[0]"), ("layer", "0[0]"), ("target", "mse_loss")}
    layer = seen["layer", "0[0]"]
    assert (layer.shape, layer.dtype, layer.looks, layer.constant_looks) == ((16, 3), "float32", 4, 0)
    assert abs(layer.mean) < 0.5 < layer.std < 1.5
    assert layer.low < 0 < layer.high


def test_samples_that_are_equal_are_counted_with_the_line_that_made_them_so(tmp_path):
    def program():
        x, y = torch.rand(32, 3), torch.randn(32, 1)
        zeros = x.to(torch.uint8)
        return train(nn.Linear(3, 1), DataLoader(TensorDataset(zeros.float(), y), batch_size=8))

    layer = feeds(tmp_path, program)["layer", "[0]"]

    assert layer.looks == layer.constant_looks == 4
    assert layer.made_at is not None
    assert layer.made_at.code == "zeros = x.to(torch.uint8)"


def test_the_line_of_a_varying_target_is_the_one_that_computed_it(tmp_path):
    def program():
        x = torch.rand(32, 3)
        y = torch.stack((1000.0 * x[:, 0], x[:, 1]), dim=1)
        return train(nn.Linear(3, 2), [(x[i], y[i]) for i in torch.arange(32).split(8)])

    target = feeds(tmp_path, program)["target", "mse_loss"]

    assert target.made_at is not None
    assert target.made_at.code == "y = torch.stack((1000.0 * x[:, 0], x[:, 1]), dim=1)"
    assert target.largest_std > 500 * target.smallest_std


def test_columns_of_zeros_and_ones_have_no_scale(tmp_path):
    def program():
        x = torch.randn(16, 3)
        y = torch.stack((x[:, 0], (x[:, 1] > 0).float(), 0.5 * x[:, 2]), dim=1)
        return train(nn.Linear(3, 3), [(x, y)] * 3)

    target = feeds(tmp_path, program)["target", "mse_loss"]

    assert target.largest_std < 5 * target.smallest_std


def test_a_difference_that_is_weighed_column_by_column_has_no_scale(tmp_path):
    def program():
        model, scale = nn.Linear(3, 2), torch.tensor([1000.0, 1.0])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            x = torch.randn(16, 3)
            loss = ((model(x) - scale * x[:, :2]) / scale).pow(2).mean()
            loss.backward()
            optimizer.step()
        return model

    target = feeds(tmp_path, program)["target", "sub"]

    assert target.smallest_std != target.smallest_std


def test_an_expanded_sample_and_a_batch_of_one_are_told_apart_from_equal_samples(tmp_path):
    def program():
        one = torch.randn(3)
        train(nn.Linear(3, 1), [(one.expand(4, 3), torch.randn(4, 1))] * 3)
        return train(nn.Linear(3, 1), [(one.view(1, 3), torch.randn(1, 1))] * 3)

    layers = [feed for feed in watched(tmp_path, program, every=1).feeds if feed.kind == "layer"]

    assert [(feed.looks, feed.constant_looks, feed.expanded) for feed in layers] == [(3, 3, True), (0, 0, False)]


def test_sparse_and_empty_tensors_are_left_alone(tmp_path):
    def program():
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            table = torch.randn(4, 3).to_sparse()
            loss = model(table.to_dense()).sum() + model(torch.empty(0, 3)).sum()
            loss.backward()
            optimizer.step()
        return model

    assert watched(tmp_path, program, every=1).info.notes == ()
