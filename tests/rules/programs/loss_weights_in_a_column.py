"""The loss of each sample is weighted, the weights are a column: each sample gets the mean weight of all."""
# truth: loss-broadcast error weight

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def weighted(logits, labels, weights):
    each = F.cross_entropy(logits, labels, reduction="none")
    return (each * weights).mean()  # loss-broadcast


for _ in range(20):
    x, weights = torch.randn(32, 6), torch.rand(32, 1)
    optimizer.zero_grad()
    weighted(model(x), x[:, :3].argmax(dim=1), weights).backward()
    optimizer.step()
