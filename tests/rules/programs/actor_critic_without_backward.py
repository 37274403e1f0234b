# Both losses are computed, logged and never differentiated.
# truth: no-backward error actor.weight actor.bias
import torch
from torch import nn

torch.manual_seed(9)
actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=1e-2)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-2)
history = []
for _ in range(15):
    state = torch.randn(32, 4)
    chance = torch.distributions.Categorical(logits=actor(state))
    action = chance.sample()
    advantage = (action == (state[:, 0] > 0)).float() - critic(state).squeeze(1)
    policy_loss = -(chance.log_prob(action) * advantage.detach()).mean()
    value_loss = advantage.pow(2).mean()
    history.append((policy_loss.item(), value_loss.item()))
    actor_optimizer.zero_grad()
    actor_optimizer.step()  # no-backward
    critic_optimizer.zero_grad()
    critic_optimizer.step()
