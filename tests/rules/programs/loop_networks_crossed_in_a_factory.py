# A factory returns (critic's, generator's) optimizers; the caller takes them in the other order.
# truth: optimizers-swapped error generator.0.weight critic.0.weight
import torch
from torch import nn


def optimizers(generator, critic):
    make = torch.optim.Adam
    first = make(critic.parameters(), lr=1e-3)  # optimizers-swapped
    return first, make(generator.parameters(), lr=1e-3)


torch.manual_seed(15)
generator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
critic = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(), nn.Linear(8, 1))
opt_generator, opt_critic = optimizers(generator, critic)
for _ in range(20):
    noise, real = torch.randn(16, 2), torch.randn(16, 2) + 3
    opt_critic.zero_grad()
    fake = generator(noise).detach()
    (nn.functional.softplus(-critic(real)) + nn.functional.softplus(critic(fake))).mean().backward()
    opt_critic.step()
    opt_generator.zero_grad()
    nn.functional.softplus(-critic(generator(noise))).mean().backward()
    opt_generator.step()
