"""Trains one small model and prints a digest of everything that must not change under whygrad.

python same_bits.py NAME [STEPS]
"""

import copy
import hashlib
import random
import sys

import torch
import torch.nn.functional as F
from torch import nn


def mlp():
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))
    return (
        [model],
        torch.optim.AdamW(model.parameters(), lr=1e-2),
        lambda: F.cross_entropy(model(torch.randn(16, 12)), torch.randint(0, 3, (16,))),
    )


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.act = nn.ReLU(inplace=True)
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        h = self.act(self.bn1(self.conv1(x)))
        h = self.act(self.bn2(self.conv2(h)) + h)
        return self.fc(h.mean((2, 3)))


def cnn():
    model = ConvNet()
    return (
        [model],
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        lambda: F.cross_entropy(model(torch.randn(8, 1, 8, 8)), torch.randint(0, 4, (8,))),
    )


def lstm():
    model = nn.ModuleDict({"rnn": nn.LSTM(6, 16, num_layers=2, dropout=0.2, batch_first=True), "out": nn.Linear(16, 2)})

    def loss():
        hidden, _ = model["rnn"](torch.randn(4, 9, 6))
        return F.mse_loss(model["out"](hidden[:, -1]), torch.randn(4, 2))

    return [model], torch.optim.Adam(model.parameters(), lr=1e-2), loss


def transformer():
    layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=True)
    model = nn.Sequential(nn.Linear(5, 16), nn.TransformerEncoder(layer, 2), nn.Linear(16, 1))

    def loss():
        model.eval()
        with torch.no_grad():  # the fused path of eval mode
            print("eval", model(torch.randn(3, 7, 5)).double().sum().item().hex())
        model.train()
        return model(torch.randn(3, 7, 5)).pow(2).mean()

    return [model], torch.optim.AdamW(model.parameters(), lr=1e-3), loss


def checkpointed():
    block = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Dropout(0.2))
    model = nn.ModuleList([block, nn.Linear(8, 1)])

    def loss():
        h = torch.utils.checkpoint.checkpoint(model[0], torch.randn(5, 8), use_reentrant=False)
        return model[1](h).pow(2).mean()

    return [model], torch.optim.SGD(model.parameters(), lr=0.1), loss


def autocast():
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 1))

    def loss():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(torch.randn(6, 8)).float().pow(2).mean()

    return [model], torch.optim.Adam(model.parameters(), lr=1e-2), loss


def closure():
    model = nn.Linear(4, 1)
    x, y = torch.randn(20, 4), torch.randn(20, 1)
    return [model], torch.optim.LBFGS(model.parameters(), max_iter=4), lambda: F.mse_loss(model(x), y)


def views():
    model = nn.Linear(6, 6)

    def loss():
        out = model(torch.randn(4, 6))
        half = out[:, :3]
        half.mul_(2)  # an output written in place through a view of it
        return out.pow(2).mean()

    return [model], torch.optim.SGD(model.parameters(), lr=0.05), loss


class Scaled:
    """A loop in half precision: the loss is scaled, gradients are unscaled, clipped, and the step may be skipped."""

    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
        self.schedule = torch.optim.lr_scheduler.SequentialLR(
            self.optimizer,
            [
                torch.optim.lr_scheduler.LinearLR(self.optimizer, total_iters=5),
                torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 50),
            ],
            milestones=[5],
        )

    def zero_grad(self):
        self.optimizer.zero_grad(set_to_none=False)

    def step(self):
        self.scaler.unscale_(self.optimizer)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()
        print(norm.item().hex(), self.scaler.get_scale(), self.schedule.get_last_lr())


def scaled():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    loop = Scaled(model)

    def loss():
        with torch.autocast("cpu", dtype=torch.float16):
            value = F.mse_loss(model(torch.randn(8, 8)).float(), torch.randn(8, 2))
        return loop.scaler.scale(value)

    return [model], loop, loss


def averaged():
    """Weights loaded, copied, averaged and hooked in the loop; modes switched; a layer made in forward."""
    model = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.Tanh(), nn.Dropout(0.2), nn.Linear(12, 6))
    teacher = copy.deepcopy(model)
    model[0].weight.register_hook(lambda gradient: gradient.clamp(-0.5, 0.5))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-3)

    def loss():
        model.eval()
        with torch.no_grad():
            target = teacher(torch.randn(8, 6))
            for mean, weight in zip(teacher.parameters(), model.parameters(), strict=True):
                mean.mul_(0.9).add_(weight, alpha=0.1)
        model.train()
        optimizer.param_groups[0]["lr"] *= 0.99
        if random.random() < 0.2:
            model.load_state_dict(copy.deepcopy(teacher.state_dict()))
        if model[0].weight.grad is not None:
            nn.utils.clip_grad_value_(model.parameters(), 0.1)
        return F.smooth_l1_loss(nn.LayerNorm(6)(model(torch.randn(8, 6))), target)

    return [model, teacher], optimizer, loss


def manual():
    weight = torch.randn(5, requires_grad=True)

    class Update:
        def zero_grad(self):
            weight.grad = None

        def step(self):
            with torch.no_grad():
                weight.sub_(0.1 * weight.grad)

    return [weight], Update(), lambda: (weight * torch.randn(5)).sum().pow(2)


def gan():
    generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    first = torch.optim.Adam(critic.parameters(), lr=1e-3)
    second = torch.optim.Adam(generator.parameters(), lr=1e-3)

    def loss():
        fake = generator(torch.randn(8, 4))
        first.zero_grad()
        score = F.softplus(critic(fake.detach())).mean() + F.softplus(-critic(torch.randn(8, 2))).mean()
        score.backward()
        first.step()
        return F.softplus(-critic(fake)).mean()

    return [generator, critic], second, loss


def tensors_of(things):
    for thing in things:
        yield from thing.state_dict().values() if isinstance(thing, nn.Module) else [thing]


def train(name, steps=12):
    torch.manual_seed(0)
    random.seed(0)
    things, optimizer, loss_of = globals()[name]()
    for step in range(steps):
        if name == "closure":

            def again():
                optimizer.zero_grad()
                value = loss_of()
                value.backward()
                return value

            loss = optimizer.step(again)
        else:
            loss = loss_of()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(step, loss.item().hex())
    digest = hashlib.sha256()
    for tensor in tensors_of(things):
        digest.update(
            tensor.detach().contiguous().view(torch.uint8).numpy().tobytes() if tensor.dim() else b"%r" % tensor.item()
        )
    digest.update(torch.get_rng_state().numpy().tobytes())
    digest.update(repr(random.getstate()).encode())
    print(digest.hexdigest())


if __name__ == "__main__":
    train(sys.argv[1], *map(int, sys.argv[2:]))
