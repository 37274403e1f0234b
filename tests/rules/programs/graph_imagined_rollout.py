# A world model, an actor and a critic, each behind a stop-gradient of the others, each with a loss of its own.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(21)
world, actor, critic = nn.Linear(6, 4), nn.Linear(4, 2), nn.Linear(4, 1)
of_world = torch.optim.Adam(world.parameters(), lr=1e-2)
of_actor = torch.optim.Adam(actor.parameters(), lr=1e-2)
of_critic = torch.optim.Adam(critic.parameters(), lr=1e-2)
for _ in range(12):
    state, action = torch.randn(32, 4), torch.randn(32, 2)
    predicted = world(torch.cat([state, action], 1))
    world_loss = (predicted - state.roll(1, 1)).pow(2).mean()
    of_world.zero_grad()
    world_loss.backward()
    of_world.step()

    imagined = world(torch.cat([state, actor(state)], 1))
    actor_loss = -critic(imagined).mean()
    of_actor.zero_grad()
    actor_loss.backward()
    of_actor.step()

    value = critic(imagined.detach()).squeeze(1)
    critic_loss = (value - imagined.detach().sum(1)).pow(2).mean()
    of_critic.zero_grad()
    critic_loss.backward()
    of_critic.step()
