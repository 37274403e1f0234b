# Weights of the tasks, as GradNorm learns them: backward adds to their gradient, which is then thrown away for another.
# truth: quiet
import torch
from torch import nn


class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 16)
        self.heads = nn.ModuleList([nn.Linear(16, 1), nn.Linear(16, 1)])

    def forward(self, x):
        features = self.trunk(x).relu()
        return [head(features) for head in self.heads]


torch.manual_seed(0)
model = TwoTasks()
balance = nn.Parameter(torch.ones(2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
balancer = torch.optim.Adam([balance], lr=1e-2)
for _ in range(20):
    x = torch.randn(64, 8)
    small, large = model(x)
    losses = torch.stack([(small - x[:, :1]).pow(2).mean(), (large - 5 * x[:, 1:2]).pow(2).mean()])
    optimizer.zero_grad()
    (balance * losses).sum().backward(retain_graph=True)
    norms = torch.stack(
        [
            torch.autograd.grad(weight * loss, model.trunk.weight, create_graph=True)[0].norm()
            for weight, loss in zip(balance, losses, strict=True)
        ]
    )
    uneven = (norms - norms.mean().detach()).abs().sum()
    balance.grad = torch.autograd.grad(uneven, balance)[0]
    optimizer.step()
    balancer.step()
    with torch.no_grad():
        balance.mul_(2 / balance.sum())
