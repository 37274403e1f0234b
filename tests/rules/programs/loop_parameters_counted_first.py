# The size of the backbone is summed up from the very generator that the optimizer is given afterwards.
# truth: exhausted-iterator error backbone.0.weight backbone.2.bias
import torch
from torch import nn

torch.manual_seed(12)
backbone = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8))
head = nn.Linear(8, 1)
slow = (p for p in backbone.parameters() if p.requires_grad)
size = sum(p.numel() for p in slow)
groups = [{"params": slow, "lr": 1e-3}, {"params": head.parameters()}]
optimizer = torch.optim.SGD(groups, lr=1e-2)  # exhausted-iterator
for _ in range(12):
    x = torch.randn(16, 6)
    optimizer.zero_grad()
    (head(backbone(x)) - x[:, :1]).pow(2).mean().backward()
    optimizer.step()
