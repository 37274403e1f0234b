# Attention weights are masked in place after the softmax, whose backward needs them.
# truth: overwritten-inplace error weights
import torch
from torch import nn


def pool(scores, values, lengths):
    weights = scores.softmax(dim=1)
    empty = torch.arange(scores.shape[1]) >= lengths.unsqueeze(1)
    weights[empty] = 0  # overwritten-inplace
    return (weights.unsqueeze(2) * values).sum(1)


torch.manual_seed(16)
score, head = nn.Linear(6, 1), nn.Linear(6, 1)
optimizer = torch.optim.SGD([*score.parameters(), *head.parameters()], lr=0.1)
for _ in range(10):
    x = torch.randn(8, 5, 6)
    pooled = pool(score(x).squeeze(2), x, torch.randint(1, 5, (8,)))
    loss = head(pooled).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
