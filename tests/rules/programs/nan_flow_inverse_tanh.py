# A squashed action is mapped back by atanh: an action that rounds to 1 gives Inf.
# truth: nonfinite-gradient error body.weight scale
import torch
from torch import nn


class Squashed(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 2)
        self.scale = nn.Parameter(torch.zeros(2))

    def log_prob(self, states, actions):
        raw = torch.atanh(actions)  # nonfinite-gradient
        normal = torch.distributions.Normal(self.body(states), self.scale.exp(), validate_args=False)
        return (normal.log_prob(raw) - torch.log(1 - actions.pow(2) + 1e-6)).sum(dim=-1)


torch.manual_seed(6)
policy = Squashed()
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
for step in range(25):
    states = torch.randn(20, 4)
    actions = torch.tanh(states[:, :2] + 0.3 * torch.randn(20, 2))
    if step == 15:
        actions[4, 1] = torch.tanh(torch.tensor(30.0))
    loss = -policy.log_prob(states, actions).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
