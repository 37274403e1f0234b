"""Actor and critic: the critic's column meets flat returns, so each action is judged by all advantages."""
# truth: loss-broadcast error

import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
critic = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-3)
for _ in range(30):
    state = torch.randn(48, 3)
    policy = Normal(actor(state).squeeze(-1), 0.5)
    action = policy.sample()
    returns = -(action - state.sum(dim=1)).abs()
    value = critic(state)
    advantage = returns - value.detach()  # loss-broadcast
    actor_loss = -(policy.log_prob(action) * advantage).mean()
    critic_loss = (value.squeeze(-1) - returns).pow(2).mean()
    optimizer.zero_grad()
    (actor_loss + 0.5 * critic_loss).backward()
    optimizer.step()
