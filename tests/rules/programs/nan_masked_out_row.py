# A padded sequence without a single token: every score of its rows is masked, and softmax has nothing to choose from.
# truth: nonfinite-gradient error q.weight v.weight
import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x, valid):
        scores = self.q(x) @ self.k(x).transpose(1, 2) / math.sqrt(x.size(-1))
        scores = scores.masked_fill(~valid[:, None, :], float("-inf"))
        return torch.softmax(scores, dim=-1) @ self.v(x)  # nonfinite-gradient


torch.manual_seed(4)
model = Attention(8)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(20):
    x = torch.randn(6, 5, 8)
    lengths = torch.randint(1, 6, (6,))
    if step == 9:
        lengths[3] = 0
    valid = torch.arange(5) < lengths[:, None]
    loss = (model(x, valid) - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
