# Targets in three units; one loss divides each column's error by its spread, another standardises the targets first.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(256, 5)
target = torch.stack((5000.0 * x[:, 0], 3.0 * x[:, 1], 0.01 * x[:, 2]), dim=1)
spread = target.std(dim=0)
model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for index in torch.randint(0, 256, (40, 32)):
    weighed = ((model(x[index]) * spread - target[index]) / spread).pow(2).mean()
    loss = weighed + nn.functional.mse_loss(model(x[index]), target[index] / spread)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
