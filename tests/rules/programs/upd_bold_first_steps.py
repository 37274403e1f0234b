# A rate of 0.3 moves small weights by more than their size, and the loss falls all the same.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(33)
model = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
for p in model.parameters():
    nn.init.normal_(p, std=0.02)
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
for _ in range(60):
    x = torch.randn(64, 6)
    loss = nn.functional.mse_loss(model(x), x[:, :1] - x[:, 1:2])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
