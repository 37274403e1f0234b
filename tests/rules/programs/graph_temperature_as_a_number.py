# Contrastive training with a learned temperature, which is read as a number before the division.
# truth: detached error log_temperature
import torch
from torch import nn


class Pairs(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(6, 8)
        self.right = nn.Linear(6, 8)
        self.log_temperature = nn.Parameter(torch.tensor(-1.0))

    def similarity(self, a, b):
        temperature = self.log_temperature.exp().item()  # detached
        return nn.functional.normalize(a, dim=1) @ nn.functional.normalize(b, dim=1).T / temperature

    def forward(self, x, y):
        return self.similarity(self.left(x), self.right(y))


torch.manual_seed(1)
model = Pairs()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(20):
    x = torch.randn(24, 6)
    logits = model(x, x + 0.1 * torch.randn(24, 6))
    loss = nn.functional.cross_entropy(logits, torch.arange(24))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
