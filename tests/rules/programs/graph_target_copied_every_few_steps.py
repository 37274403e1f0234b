# Q-learning: the target network is a part of the agent, sits in its optimizer, and is copied now and then.
# truth: quiet
import copy

import torch
from torch import nn


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        self.target = copy.deepcopy(self.online)

    def loss(self, state, action, reward, after):
        with torch.no_grad():
            goal = reward + 0.9 * self.target(after).max(1).values
        chosen = self.online(state).gather(1, action.unsqueeze(1)).squeeze(1)
        return (chosen - goal).pow(2).mean()


torch.manual_seed(20)
agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=1e-2)
for step in range(20):
    state, action = torch.randn(32, 4), torch.randint(0, 2, (32,))
    loss = agent.loss(state, action, state[:, 0], state + 0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 4:
        agent.target.load_state_dict(agent.online.state_dict())
