# Each task's gradient is computed by backward, copied and cleared; their projections are written back, then stepped on.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(32)
net = nn.Sequential(nn.Linear(6, 16), nn.ELU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)


def gradient_of(loss):
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    return torch.cat([p.grad.flatten() for p in net.parameters()])


for _ in range(25):
    x = torch.randn(32, 6)
    out = net(x)
    one, other = (gradient_of((out[:, i] - x[:, i]).pow(2).mean()) for i in range(2))
    if one @ other < 0:
        one = one - (one @ other) / other.square().sum() * other
    merged = (one + other).split([p.numel() for p in net.parameters()])
    for parameter, part in zip(net.parameters(), merged, strict=True):
        parameter.grad = part.view_as(parameter)
    optimizer.step()
