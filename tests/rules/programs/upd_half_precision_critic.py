# Two networks in float16, stepped by Adam with the eps it comes with.
# truth: optimizer-eps-underflow error critic.0.weight
import torch
from torch import nn


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
        self.critic = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, x):
        return self.actor(x), self.critic(x)


torch.manual_seed(16)
agent = Agent().to(dtype=torch.float16)
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4)  # optimizer-eps-underflow
for _ in range(12):
    x = torch.randn(64, 6).half()
    logits, value = agent(x)
    loss = 0.01 * value.float().pow(2).mean() + 0.01 * logits.float().logsumexp(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
