# Sums over large targets with a few extreme ones: huge gradients whose updates stay small.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(21)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(70):
    x = torch.randn(64, 5)
    target = 100.0 * x[:, 0] + 20.0 * torch.randn(64)
    target[0] += 3e4 if step % 20 == 11 else 0.0
    loss = nn.functional.huber_loss(model(x).squeeze(1), target, reduction="sum", delta=1000.0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
