# A hinge GAN: until the critic's scores leave -1..1 its last bias gets -1 from one half and +1 from the other.
# truth: quiet
import torch
from torch import nn
from torch.nn.utils import parametrizations, spectral_norm


def ring(count):
    angle = 6.28 * torch.rand(count)
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(count, 2)


def play(bounded):
    generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    critic = nn.Sequential(bounded(nn.Linear(2, 32)), nn.LeakyReLU(0.2), bounded(nn.Linear(32, 1)))
    of_generator = torch.optim.Adam(generator.parameters(), lr=1e-4, betas=(0.0, 0.9))
    of_critic = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
    for _ in range(12):
        for _ in range(2):
            made = generator(torch.randn(64, 8)).detach()
            loss = torch.relu(1 - critic(ring(64))).mean() + torch.relu(1 + critic(made)).mean()
            of_critic.zero_grad()
            loss.backward()
            of_critic.step()
        loss = -critic(generator(torch.randn(64, 8))).mean()
        of_generator.zero_grad()
        loss.backward()
        of_generator.step()


torch.manual_seed(0)
for wrapper in (spectral_norm, parametrizations.spectral_norm, parametrizations.weight_norm):
    play(wrapper)
