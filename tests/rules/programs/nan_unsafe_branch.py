# `where` leaves out the direction of a step of length 0; backward divides by that length all the same: 0 / 0.
# truth: nonfinite-gradient error 0.weight 2.weight
import torch
from torch import nn


def directions(path):
    steps = path[:, 1:] - path[:, :-1]
    lengths = steps.norm(dim=-1, keepdim=True)
    return torch.where(lengths > 0, steps / lengths, 0.0)  # nonfinite-gradient


torch.manual_seed(3)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(12):
    x = torch.randn(6, 5, 4)
    if step == 7:
        x[2, 3] = x[2, 2]
    loss = (directions(model(x)) - directions(x[..., :2])).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
