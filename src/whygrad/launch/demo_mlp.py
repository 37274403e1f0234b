"""The program of `whygrad demo`: a multilayer perceptron, trained on one random batch."""

import argparse

import torch
from torch import nn

WIDTH = 32


def build(depth: int, activation: str) -> nn.Sequential:
    """Return `depth` linear layers with an activation, named as in `torch.nn`, between them."""
    layers: list[nn.Module] = []
    for _ in range(depth - 1):
        layers += [nn.Linear(WIDTH, WIDTH), getattr(nn, activation)()]
    return nn.Sequential(*layers, nn.Linear(WIDTH, 1))


def train(model: nn.Module, steps: int) -> None:
    """Fit the model to a random batch of 64."""
    inputs, targets = torch.randn(64, WIDTH), torch.randn(64, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--activation", default="ReLU")
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    train(build(arguments.depth, arguments.activation), arguments.steps)
