# Two losses over one graph that is kept on purpose, with a running total as a plain number.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(30)
trunk, left, right = nn.Linear(6, 10), nn.Linear(10, 1), nn.Linear(10, 1)
optimizer = torch.optim.SGD([*trunk.parameters(), *left.parameters(), *right.parameters()], lr=0.05)
total = torch.zeros(())
for _ in range(12):
    x = torch.randn(32, 6)
    h = torch.tanh(trunk(x))
    losses = [(left(h) - x[:, :1]).pow(2).mean(), (right(h) - x[:, 1:2]).pow(2).mean()]
    optimizer.zero_grad()
    losses[0].backward(retain_graph=True)
    losses[1].backward()
    optimizer.step()
    total += sum(losses).detach()
