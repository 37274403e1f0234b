# A loss that is NaN now and then is never sent backward.
# truth: quiet
import torch
from torch import nn


def contrast(a, b, keep):
    return ((a - b).pow(2).sum(dim=1) * keep).sum() / keep.sum()


torch.manual_seed(15)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(150):
    x = torch.randn(5, 6)
    keep = (torch.rand(5) < 0.4).float()
    loss = contrast(model(x), x[:, :3].sin(), keep)
    if not torch.isfinite(loss):
        continue
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
