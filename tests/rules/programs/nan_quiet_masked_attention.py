# -Inf masks, a log of 0 that `where` takes out after a safe start, and nan_to_num: nothing reaches a parameter.
# truth: quiet
import math

import torch
from torch import nn


class Causal(nn.Module):
    def __init__(self):
        super().__init__()
        self.inside = nn.Linear(8, 24)
        self.out = nn.Linear(8, 8)
        self.register_buffer("mask", torch.full((6, 6), float("-inf")).triu(1))

    def forward(self, x):
        q, k, v = self.inside(x).chunk(3, dim=-1)
        return self.out((q @ k.transpose(1, 2) / math.sqrt(8) + self.mask).softmax(dim=-1) @ v)


def safe_log(x):
    positive = x > 0
    return torch.where(positive, torch.where(positive, x, 1.0).log(), 0.0)


torch.manual_seed(14)
model = Causal()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(60):
    x = torch.randn(8, 6, 8)
    counts = torch.poisson(torch.ones(8, 6, 8))
    weights = torch.nan_to_num(counts / counts.sum(dim=0, keepdim=True), nan=0.0)
    loss = (weights * (model(x) - safe_log(counts) - x.cumsum(dim=1)).pow(2)).sum(dim=(0, 1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
