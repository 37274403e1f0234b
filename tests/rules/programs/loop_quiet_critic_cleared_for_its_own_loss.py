# The generator's loss fills the critic's gradients; they are cleared right before the critic's own backward.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(21)
generator = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.5, 0.9))
for _ in range(25):
    noise, real = torch.randn(32, 2), torch.randn(32, 2) + 1
    fake = generator(noise)
    generator.zero_grad()
    nn.functional.softplus(-critic(fake)).mean().backward()
    opt_g.step()
    critic.zero_grad()
    loss = nn.functional.softplus(-critic(real)).mean()
    loss.backward()
    nn.functional.softplus(critic(fake.detach())).mean().backward()
    opt_c.step()
