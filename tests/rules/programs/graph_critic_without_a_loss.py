# The critic has an optimizer and a loss, and only the actor's loss is differentiated.
# truth: unreached-parameter error
import torch
from torch import nn

torch.manual_seed(34)
actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
of_actor = torch.optim.Adam(actor.parameters(), lr=1e-2)
of_critic = torch.optim.Adam(critic.parameters(), lr=1e-2)
for _ in range(12):
    state = torch.randn(32, 4)
    chance = torch.distributions.Categorical(logits=actor(state))
    action = chance.sample()
    reward = (action == (state[:, 0] > 0)).float()
    actor_loss = -(chance.log_prob(action) * (reward - reward.mean())).mean()
    critic_loss = (critic(state).squeeze(1) - reward).pow(2).mean()  # unreached-parameter
    of_actor.zero_grad()
    of_critic.zero_grad()
    actor_loss.backward()
    of_actor.step()
    of_critic.step()
