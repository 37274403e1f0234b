# The generator's loss is computed before the critic steps, and differentiated after.
# truth: overwritten-inplace error
import torch
from torch import nn

torch.manual_seed(17)
generator, critic = nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
of_generator = torch.optim.SGD(generator.parameters(), lr=0.1)
of_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
for _ in range(10):
    real, fake = torch.randn(16, 4), generator(torch.randn(16, 3))
    critic_loss = critic(fake.detach()).mean() - critic(real).mean()
    generator_loss = -critic(fake).mean()
    of_critic.zero_grad()
    critic_loss.backward()
    of_critic.step()  # overwritten-inplace
    of_generator.zero_grad()
    generator_loss.backward()
    of_generator.step()
