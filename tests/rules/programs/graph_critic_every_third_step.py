# The critic rests for two of three steps, in which its optimizer steps without a gradient.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(40)
actor, critic = nn.Linear(4, 4), nn.Linear(4, 1)
of_actor = torch.optim.Adam(actor.parameters(), lr=1e-2)
of_critic = torch.optim.Adam(critic.parameters(), lr=1e-2)
for step in range(18):
    state = torch.randn(32, 4)
    value = critic(actor(state)).mean()
    of_actor.zero_grad()
    of_critic.zero_grad()
    (-value).backward(inputs=list(actor.parameters()))
    if step % 3 == 2:
        goal = critic(actor(state).detach()).squeeze(1) - state[:, 0]
        goal.pow(2).mean().backward()
    of_actor.step()
    of_critic.step()
