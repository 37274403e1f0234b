# Two losses, each with its own clear and backward, and one step: the first loss is computed for nothing.
# truth: zero-grad-misplaced error trunk.weight
import torch
from torch import nn

torch.manual_seed(3)
trunk, left, right = nn.Linear(5, 8), nn.Linear(8, 1), nn.Linear(8, 1)
everything = [*trunk.parameters(), *left.parameters(), *right.parameters()]
optimizer = torch.optim.SGD(everything, lr=0.05)
for _ in range(14):
    x = torch.randn(20, 5)
    optimizer.zero_grad()
    (left(trunk(x)) - x[:, :1]).pow(2).mean().backward()
    optimizer.zero_grad()  # zero-grad-misplaced
    (right(trunk(x)) - x[:, 1:2]).pow(2).mean().backward()
    optimizer.step()
