# Test-time adaptation: each batch begins with the source model and a fresh optimizer state, on purpose.
# truth: quiet
import copy

import torch
from torch import nn

torch.manual_seed(35)
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
source = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())
for _ in range(12):
    model.load_state_dict(source[0])
    optimizer.load_state_dict(source[1])
    x = torch.randn(32, 6)
    for _ in range(2):
        p = model(x).softmax(1)
        loss = -(p * p.log()).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
