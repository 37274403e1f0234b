"""Healthy: labels 1 and -1 for margin losses, soft labels with a little smoothing, and a hinge of its own."""
# truth: quiet

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(30):
    x = torch.randn(40, 6)
    sign = torch.sign(x[:, 0] + 0.5)
    score = model(x).flatten()
    loss = F.soft_margin_loss(score, sign) + F.relu(1 - sign * score).mean()
    loss = loss + F.margin_ranking_loss(score[:20], score[20:], torch.sign(x[:20, 0] - x[20:, 0]), margin=0.1)
    loss = loss + F.binary_cross_entropy_with_logits(score, 0.1 + 0.8 * (sign > 0).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
