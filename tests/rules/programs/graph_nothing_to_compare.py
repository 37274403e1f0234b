# A ranking loss over pairs returns a fresh zero where there is no pair, and the times never differ.
# truth: constant-loss error 0.weight 2.bias
import torch
from torch import nn


def ranking(risk, time):
    before = time.unsqueeze(0) < time.unsqueeze(1)
    if not before.any():
        return torch.tensor(0.0, requires_grad=True)  # constant-loss
    gap = risk.unsqueeze(0) - risk.unsqueeze(1)
    return nn.functional.softplus(-gap[before]).mean()


torch.manual_seed(18)
net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(10):
    x = torch.rand(24, 5)
    time = x[:, 0].long()  # years, but the table holds fractions of one
    loss = ranking(net(x).squeeze(1), time)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
