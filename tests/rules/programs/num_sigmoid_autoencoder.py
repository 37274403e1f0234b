# An autoencoder with a sigmoid behind every layer; one line calls it all, one line makes its layers.
# truth: vanishing-gradient warning encoder.0.weight encoder.2.weight
from itertools import pairwise

import torch
from torch import nn


def stack(*widths):
    layers = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.Sigmoid()]  # vanishing-gradient
    return nn.Sequential(*layers)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = stack(40, 30, 20, 10)
        self.decoder = stack(10, 20, 30, 40)

    def forward(self, x):
        return self.decoder(self.encoder(x))


torch.manual_seed(8)
model = Autoencoder()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
patterns = torch.rand(6, 40)
for _ in range(60):
    x = patterns[torch.randint(0, 6, (48,))]
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
