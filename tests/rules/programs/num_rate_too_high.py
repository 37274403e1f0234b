# Plain regression diverges: every step overshoots further than the one before, until the numbers overflow.
# truth: exploding-gradient error 0.weight 2.weight
import torch
from torch import nn

torch.manual_seed(13)
model = nn.Sequential(nn.Linear(12, 32), nn.Softplus(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1.5)  # exploding-gradient
for _ in range(40):
    x = 3.0 * torch.randn(64, 12)
    loss = nn.functional.mse_loss(model(x).squeeze(1), x.sum(dim=1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
