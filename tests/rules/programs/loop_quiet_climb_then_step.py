# Sharpness-aware: the first gradient moves the weights up through .data and is cleared, the second one is stepped on.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(25)
model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def climb(parameters, radius=0.05):
    norm = torch.stack([p.grad.norm() for p in parameters]).norm()
    moves = [radius * p.grad / norm for p in parameters]
    for parameter, move in zip(parameters, moves, strict=True):
        parameter.data.add_(move)
    return moves


for _ in range(25):
    x = torch.randn(32, 5)
    y = x.prod(1, keepdim=True)
    optimizer.zero_grad()
    (model(x) - y).pow(2).mean().backward()
    moves = climb(list(model.parameters()))
    optimizer.zero_grad()
    (model(x) - y).pow(2).mean().backward()
    for parameter, move in zip(model.parameters(), moves, strict=True):
        parameter.data.sub_(move)
    optimizer.step()
