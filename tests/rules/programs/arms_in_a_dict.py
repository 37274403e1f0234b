# A bandit keeps one linear model for each arm in a dict; only the shared encoder is registered.
# truth: unregistered-parameter error arms.red.weight arms.blue.weight
import torch
from torch import nn


class Bandit(nn.Module):
    def __init__(self, arms):
        super().__init__()
        self.encode = nn.Linear(5, 8)
        self.arms = {arm: nn.Linear(8, 1, bias=False) for arm in arms}  # unregistered-parameter

    def forward(self, context):
        h = self.encode(context).relu()
        return torch.cat([self.arms[arm](h) for arm in self.arms], dim=1)


torch.manual_seed(3)
bandit = Bandit(["red", "blue"])
optimizer = torch.optim.Adam(bandit.parameters(), lr=1e-2)
for _ in range(20):
    context = torch.randn(32, 5)
    loss = (bandit(context) - context[:, :2]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
