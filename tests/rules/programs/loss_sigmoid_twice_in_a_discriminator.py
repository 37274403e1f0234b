"""A discriminator that ends in a sigmoid, with a loss that applies one."""
# truth: double-softmax warning discriminator.0.weight

import torch
import torch.nn.functional as F
from torch import nn


class Discriminator(nn.Sequential):
    def forward(self, x):
        return torch.sigmoid(super().forward(x))  # double-softmax


torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
discriminator = Discriminator(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
optimizers = [torch.optim.Adam(net.parameters(), lr=2e-3) for net in (generator, discriminator)]
ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
for _ in range(25):
    real, fake = torch.randn(32, 2) * 0.3 + 1.0, generator(torch.randn(32, 4))
    loss_d = F.binary_cross_entropy_with_logits(discriminator(real), ones)
    loss_d = loss_d + F.binary_cross_entropy_with_logits(discriminator(fake.detach()), zeros)
    optimizers[1].zero_grad()
    loss_d.backward()
    optimizers[1].step()
    loss_g = F.binary_cross_entropy_with_logits(discriminator(fake), ones)
    optimizers[0].zero_grad()
    loss_g.backward()
    optimizers[0].step()
