# Attention divides by a temperature of 0.001: the softmax picks one entry for good, and nobody learns which.
# truth: saturated-activation warning query.weight key.weight
import torch
from torch import nn


class Lookup(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.choose = nn.Softmax(dim=-1)  # saturated-activation

    def forward(self, question, entries):
        scores = (self.key(entries) @ self.query(question).unsqueeze(-1)).squeeze(-1)
        weights = self.choose(scores / 1e-3)
        return (weights.unsqueeze(-1) * entries).sum(dim=1)


torch.manual_seed(0)
model = Lookup()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(60):
    entries = torch.randn(64, 8, 16)
    target = torch.randint(0, 8, (64,))
    question = entries[torch.arange(64), target] + 0.1 * torch.randn(64, 16)
    loss = (model(question, entries) - entries[torch.arange(64), target]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
