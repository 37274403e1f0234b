# Cross-validation: each fold begins with the same weights and an optimizer of its own.
# truth: quiet
import copy

import torch
from torch import nn

torch.manual_seed(25)
model = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 1))
start = copy.deepcopy(model.state_dict())
x = torch.randn(120, 5)
y = x[:, :1] - x[:, 1:2]
fold = torch.arange(120) % 4
for k in range(4):
    model.load_state_dict(start)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    for _ in range(12):
        loss = nn.functional.mse_loss(model(x[fold != k]), y[fold != k])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(nn.functional.mse_loss(model(x[fold == k]), y[fold == k]).item())
    model.train()
