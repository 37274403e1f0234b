# The critic is frozen while the generator learns, and let go for its own step.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(20)
generator = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
critic = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(), nn.Linear(8, 1))
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
for _ in range(20):
    real, noise = torch.randn(32, 2) + 2, torch.randn(32, 3)
    critic.requires_grad_(True)
    critic_optimizer.zero_grad()
    (critic(generator(noise).detach()).mean() - critic(real).mean()).tanh().backward()
    critic_optimizer.step()
    critic.requires_grad_(False)
    generator_optimizer.zero_grad()
    critic(generator(noise)).tanh().mean().neg().backward()
    generator_optimizer.step()
