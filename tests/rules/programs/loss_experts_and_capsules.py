"""Healthy: gates over experts, clusters that collect tokens, and weights that add up over the batch on purpose."""
# truth: quiet

import torch
import torch.nn.functional as F
from torch import nn


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(6, 3)
        self.experts = nn.ModuleList(nn.Linear(6, 8) for _ in range(3))
        self.assign = nn.Linear(8, 5)
        self.out = nn.Linear(40, 2)

    def forward(self, tokens):
        gates = self.gate(tokens).softmax(dim=-1)
        mixed = torch.stack([expert(tokens) for expert in self.experts], dim=-2)
        mixed = (gates.unsqueeze(-1) * mixed).sum(dim=-2)
        clusters = self.assign(mixed).softmax(dim=-1)
        pooled = clusters.transpose(1, 2) @ mixed / tokens.shape[1]
        return self.out(pooled.flatten(1)), gates


torch.manual_seed(0)
model = Mixture()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _ in range(30):
    tokens = torch.randn(16, 9, 6)
    logits, gates = model(tokens)
    each = F.cross_entropy(logits, (tokens.mean(dim=(1, 2)) > 0).long(), reduction="none")
    hard = torch.softmax(each.detach(), dim=0)
    balance = gates.mean(dim=(0, 1)).pow(2).sum() * 3
    optimizer.zero_grad()
    ((hard * each).sum() + 0.1 * balance).backward()
    optimizer.step()
