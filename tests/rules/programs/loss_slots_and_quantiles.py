"""Healthy: slots compete for tokens and are normalised anew; all quantiles meet all targets."""
# truth: quiet

import torch
import torch.nn.functional as F
from torch import nn


class Slots(nn.Module):
    def __init__(self):
        super().__init__()
        self.slots = nn.Parameter(torch.randn(3, 8))
        self.query, self.key, self.value = nn.Linear(8, 8), nn.Linear(6, 8), nn.Linear(6, 8)
        self.out = nn.Linear(24, 5)

    def forward(self, tokens):
        slots = self.slots.expand(len(tokens), -1, -1)
        weights = (self.query(slots) @ self.key(tokens).transpose(1, 2) / 3.0).softmax(dim=1) + 1e-6
        weights = weights / weights.sum(dim=-1, keepdim=True)
        return self.out((weights @ self.value(tokens)).flatten(1))


torch.manual_seed(0)
model, levels = Slots(), torch.linspace(0.1, 0.9, 5).view(1, -1, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _ in range(30):
    tokens = torch.randn(24, 7, 6)
    target = tokens.mean(dim=(1, 2)).unsqueeze(1) + 0.1 * torch.randn(24, 5)
    error = target.unsqueeze(1) - model(tokens).unsqueeze(2)
    loss = ((levels - (error.detach() < 0).float()).abs() * F.huber_loss(error, error * 0, reduction="none")).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
