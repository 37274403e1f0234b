"""Healthy: sparse codes behind a ReLU are drawn to a codebook, and to a teacher's features, that are not positive."""
# truth: quiet

import torch
import torch.nn.functional as F
from torch import nn


class Codes(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(8, 12), nn.ReLU())
        self.book = nn.Parameter(0.3 * torch.randn(20, 12))
        self.decode = nn.Linear(12, 8)

    def forward(self, x):
        z = self.encode(x)
        nearest = torch.cdist(z, self.book).argmin(dim=1)
        q = self.book[nearest]
        return self.decode(z + (q - z).detach()), z, q


torch.manual_seed(0)
model, teacher = Codes(), nn.Linear(8, 12)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _ in range(30):
    x = torch.randn(32, 8)
    out, z, q = model(x)
    commit = F.mse_loss(z, q.detach()) + F.mse_loss(q, z.detach())
    loss = F.mse_loss(out, x) + commit + 0.1 * F.mse_loss(z, teacher(x).detach())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
