"""An actor that returns probabilities, which the distribution takes for logits."""
# truth: double-softmax warning 0.weight 2.weight

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 3))
optimizer = torch.optim.Adam(actor.parameters(), lr=1e-2)


def act(state):
    probabilities = torch.softmax(actor(state), dim=-1)  # double-softmax
    return Categorical(logits=probabilities)


for _ in range(30):
    state = torch.randn(64, 4)
    policy = act(state)
    action = policy.sample()
    reward = (action == state[:, :3].argmax(dim=1)).float()
    loss = -(policy.log_prob(action) * (reward - reward.mean())).mean() - 0.01 * policy.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
