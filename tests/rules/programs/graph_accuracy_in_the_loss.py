# The share of errors is added to the loss in the hope that it falls.
# truth: nondifferentiable-op warning
import torch
from torch import nn


def errors(logits, target):
    return (logits.argmax(1) != target).float().mean()  # nondifferentiable-op


torch.manual_seed(33)
net = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(15):
    x = torch.randn(32, 5)
    target = x[:, :3].argmax(1)
    logits = net(x)
    loss = nn.functional.cross_entropy(logits, target) + 0.5 * errors(logits, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
