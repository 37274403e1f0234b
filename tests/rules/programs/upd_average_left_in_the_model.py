# A moving average of the weights is copied into the model for each validation, and nothing takes it out again.
# truth: weights-overwritten error 0.weight 2.weight
import torch
from torch import nn

torch.manual_seed(3)
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
average = [p.detach().clone() for p in net.parameters()]
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)


def validate(x, y):
    for p, a in zip(net.parameters(), average, strict=True):
        p.data.copy_(a)  # weights-overwritten
    with torch.no_grad():
        return (net(x) - y).abs().mean().item()


for step in range(40):
    x = torch.randn(32, 6)
    y = x[:, :1] * x[:, 1:2]
    loss = nn.functional.mse_loss(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for p, a in zip(net.parameters(), average, strict=True):
            a.mul_(0.999).add_(p, alpha=0.001)
    if step % 5 == 4:
        validate(x, y)
