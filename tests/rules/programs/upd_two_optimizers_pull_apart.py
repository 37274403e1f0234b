# The penalty's optimizer holds the same layer, and pushes back what the task's optimizer has just done.
# truth: optimizers-swapped warning 0.weight 0.bias
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 1))
start = [parameter.detach().clone() for parameter in model[0].parameters()]
task = torch.optim.SGD(model.parameters(), lr=0.05)
anchor = torch.optim.SGD(model[0].parameters(), lr=0.45)  # optimizers-swapped
x = torch.randn(64, 6)
y = x[:, :1] * 2

for _ in range(40):
    task.zero_grad()
    (model(x) - y).pow(2).mean().backward()
    task.step()
    anchor.zero_grad()
    sum((p - s).square().sum() for p, s in zip(model[0].parameters(), start, strict=True)).backward()
    anchor.step()
