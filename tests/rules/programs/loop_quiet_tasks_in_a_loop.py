# The losses of four tasks are summed on purpose, one backward pass each from one line; the rate fits.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(29)
trunk = nn.Sequential(nn.Linear(6, 24), nn.Tanh())
heads = nn.ModuleList(nn.Linear(24, 1) for _ in range(4))
optimizer = torch.optim.SGD([*trunk.parameters(), *heads.parameters()], lr=0.02)
for _ in range(30):
    optimizer.zero_grad()
    for task, head in enumerate(heads):
        x = torch.randn(16, 6)
        (head(trunk(x)) - x[:, task : task + 1]).pow(2).mean().backward()
    optimizer.step()
