# Dropout in place overwrites what the sigmoid before it needs.
# truth: overwritten-inplace error
import torch
from torch import nn

torch.manual_seed(0)
m = nn.Sequential(
    nn.Linear(4, 16),
    nn.Sigmoid(),
    nn.Dropout(0.5, inplace=True),  # overwritten-inplace
    nn.Linear(16, 1),
)
opt = torch.optim.SGD(m.parameters(), 0.1)
for _ in range(3):
    x = torch.randn(8, 4)
    loss = (m(x) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
