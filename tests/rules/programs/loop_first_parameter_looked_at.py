# The device is read off the first parameter, which takes it out of the generator.
# truth: exhausted-iterator error 0.weight
import torch
from torch import nn

torch.manual_seed(13)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
parameters = model.parameters()
device = next(parameters).device
optimizer = torch.optim.Adam(parameters, lr=1e-2)  # exhausted-iterator
for _ in range(12):
    x = torch.randn(16, 4, device=device)
    optimizer.zero_grad()
    (model(x) - x[:, :2]).pow(2).mean().backward()
    optimizer.step()
