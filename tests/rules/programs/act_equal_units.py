# A helper starts every weight of a small network at one number: all hidden units are one unit.
# truth: symmetric-init warning layers.0.weight layers.1.weight
import torch
from torch import nn


class Surface(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, width), nn.Linear(width, width), nn.Linear(width, 1)])
        for layer in self.layers:
            start(layer)

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.sigmoid(layer(x))
        return self.layers[-1](x)


def start(layer):
    nn.init.constant_(layer.weight, 0.5)  # symmetric-init
    nn.init.constant_(layer.bias, 0.1)


torch.manual_seed(0)
model = Surface()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2)
for _ in range(30):
    x = 2.0 * torch.rand(64, 2) - 1.0
    loss = nn.functional.mse_loss(model(x).squeeze(1), x[:, 0] * x[:, 1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
