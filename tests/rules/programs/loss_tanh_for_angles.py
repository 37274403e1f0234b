"""Angles in degrees from a head that ends in tanh."""
# truth: activation-on-output error body.weight head.weight

import torch
from torch import nn


class Steering(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 20)
        self.head = nn.Linear(20, 1)

    def forward(self, view):
        hidden = torch.relu(self.body(view))
        return torch.tanh(self.head(hidden))[:, 0]  # activation-on-output


torch.manual_seed(0)
model = Steering()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
huber = nn.SmoothL1Loss()
for _ in range(30):
    view = torch.randn(40, 6)
    degrees = 25.0 * view[:, 0]
    loss = huber(model(view), degrees)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
