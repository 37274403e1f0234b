# Two distances are subtracted that are the same number; each has the gradient of another side.
# truth: constant-loss warning
import torch
from torch import nn


def distance(a, b):
    return (a - b).pow(2).mean()


torch.manual_seed(38)
left, right = nn.Linear(6, 4), nn.Linear(6, 4)
optimizer = torch.optim.SGD([*left.parameters(), *right.parameters()], lr=0.05)
for _ in range(20):
    x = torch.randn(32, 6)
    a, b = left(x), right(x)
    loss = distance(a, b.detach()) - distance(a.detach(), b)  # constant-loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
