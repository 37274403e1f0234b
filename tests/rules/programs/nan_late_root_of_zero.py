# Two points coincide at step 120: the root of 0 has an infinite slope, while the loss stays finite.
# truth: nonfinite-gradient error 0.weight 2.weight
import torch
from torch import nn


def spread(points):
    gaps = points[:, None] - points[None, :]
    upper = torch.triu_indices(len(points), len(points), offset=1)
    return gaps.square().sum(dim=-1)[upper[0], upper[1]].sqrt()  # nonfinite-gradient


torch.manual_seed(2)
model = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(130):
    x = torch.randn(8, 3)
    if step == 120:
        x[5] = x[2]
    wanted = torch.linspace(0.5, 2, 28)
    loss = (spread(model(x)) - wanted).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
