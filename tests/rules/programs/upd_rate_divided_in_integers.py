# A ramp that is written with integer division: until the ramp is over, the factor is 0.
# truth: zero-learning-rate error weight bias
import torch
from torch import nn


def set_rate(optimizer, step, base=0.1, ramp=200):
    for group in optimizer.param_groups:
        group["lr"] = base * min(1, step // ramp)  # zero-learning-rate


torch.manual_seed(20)
model = nn.Linear(6, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(30):
    set_rate(optimizer, step)
    x = torch.randn(32, 6)
    loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
