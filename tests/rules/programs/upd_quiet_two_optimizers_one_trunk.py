# Two tasks in turns, each with an optimizer of its own, share a trunk that both move.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(0)
trunk, first, second = nn.Sequential(nn.Linear(6, 16), nn.Tanh()), nn.Linear(16, 1), nn.Linear(16, 1)
one = torch.optim.SGD([*trunk.parameters(), *first.parameters()], lr=0.1)
two = torch.optim.SGD([*trunk.parameters(), *second.parameters()], lr=0.1)
x = torch.randn(64, 6)

for _ in range(60):
    for optimizer, head, target in ((one, first, x[:, :1]), (two, second, -x[:, :1] + x[:, 1:2])):
        optimizer.zero_grad()
        (head(trunk(x)) - target).pow(2).mean().backward()
        optimizer.step()
