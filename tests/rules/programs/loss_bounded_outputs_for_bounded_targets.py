"""Healthy: tanh for pixels in [-1, 1], sigmoid for shares, ReLU for counts, softplus for a variance."""
# truth: quiet

import torch
import torch.nn.functional as F
from torch import nn


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 32), nn.ReLU())
        self.pixel, self.share, self.count, self.spread = (nn.Linear(32, 1) for _ in range(4))

    def forward(self, x):
        h = self.body(x)
        return (
            torch.tanh(self.pixel(h)),
            torch.sigmoid(self.share(h)),
            torch.relu(self.count(h) + 1.0),
            F.softplus(self.spread(h)) + 1e-3,
        )


torch.manual_seed(0)
model = Heads()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _ in range(40):
    x = torch.randn(64, 5)
    pixel, share, count, variance = model(x)
    noisy = torch.tanh(x[:, :1]) + 0.0005 * torch.randn(64, 1)
    loss = F.mse_loss(pixel, noisy) + F.l1_loss(share, x[:, 1:2].sigmoid())
    loss = loss + ((count - x[:, 2:3].abs()) ** 2).mean()
    loss = loss + F.gaussian_nll_loss(x[:, 3:4] * 0, x[:, 4:5], variance)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
