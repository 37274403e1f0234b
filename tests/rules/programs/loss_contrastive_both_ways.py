"""Healthy: images and texts in one space; the same similarities are normalised by rows and by columns."""
# truth: quiet

import torch
import torch.nn.functional as F
from torch import nn


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.text = nn.Linear(8, 6), nn.Linear(5, 6)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, image, text):
        one, other = F.normalize(self.image(image), dim=-1), F.normalize(self.text(text), dim=-1)
        return self.scale.exp() * one @ other.T


torch.manual_seed(0)
model = TwoTowers()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(30):
    hidden = torch.randn(20, 5)
    image = torch.cat([hidden, torch.randn(20, 3)], dim=1)
    similarity = model(image, hidden + 0.1 * torch.randn(20, 5))
    rows = similarity.log_softmax(dim=1).diag().mean()
    columns = similarity.log_softmax(dim=0).diag().mean()
    hinge = F.cross_entropy(similarity, torch.arange(20))
    optimizer.zero_grad()
    (hinge - 0.5 * (rows + columns)).backward()
    optimizer.step()
