# A linear dynamical system learned by rolling it out: no squashing, and the horizons get longer.
# truth: exploding-gradient error move
import torch
from torch import nn


class Rollout(nn.Module):
    def __init__(self, size=8):
        super().__init__()
        self.move = nn.Parameter(torch.eye(size) + 0.25 * torch.randn(size, size))
        self.look = nn.Linear(size, 2)

    def forward(self, state, horizon):
        for _ in range(horizon):
            state = state @ self.move  # exploding-gradient
        return self.look(state)


torch.manual_seed(10)
model = Rollout()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for epoch in range(25):
    state = torch.randn(16, 8)
    loss = (model(state, 4 + 4 * epoch) - state[:, :2]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
