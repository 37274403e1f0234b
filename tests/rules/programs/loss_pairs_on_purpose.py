"""Healthy: ranking by all pairs, distances between all samples, and a weight for each sample."""
# truth: quiet

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
scorer = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
embed = nn.Linear(6, 4)
optimizer = torch.optim.Adam([*scorer.parameters(), *embed.parameters()], lr=1e-2)
for _ in range(30):
    x = torch.randn(24, 6)
    relevance, weight = x[:, 0], 0.5 + torch.rand(24)
    score = scorer(x).squeeze(-1)
    margin = score[:, None] - score
    wanted = (relevance[:, None] > relevance).float()
    ranking = F.binary_cross_entropy_with_logits(margin, wanted)
    code = embed(x)
    norms = code.pow(2).sum(dim=1, keepdim=True)
    distances = norms + code.pow(2).sum(dim=1) - 2 * code @ code.T
    targets = (relevance[:, None] - relevance[None, :]).pow(2)
    metric = (weight[:, None] * (distances - targets).abs()).mean()
    point = (weight * (score - relevance).pow(2)).mean()
    optimizer.zero_grad()
    (ranking + 0.1 * metric + point).backward()
    optimizer.step()
