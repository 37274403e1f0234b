# An actor whose last layer starts at a hundredth of its size, and an encoder that both heads train.
# truth: quiet
import torch
from torch import nn


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh()
        )
        self.policy, self.value = nn.Linear(32, 3), nn.Linear(32, 1)
        with torch.no_grad():
            self.policy.weight.mul_(0.01)

    def forward(self, state):
        h = self.body(state)
        return self.policy(h), self.value(h).squeeze(1)


torch.manual_seed(22)
agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3)
for _ in range(50):
    state = torch.randn(64, 6)
    logits, value = agent(state)
    chance = torch.distributions.Categorical(logits=logits)
    action = chance.sample()
    reward = (action == state[:, :3].argmax(1)).float()
    advantage = (reward - value).detach()
    loss = -(chance.log_prob(action) * advantage).mean() + 0.5 * (value - reward).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
    optimizer.step()
