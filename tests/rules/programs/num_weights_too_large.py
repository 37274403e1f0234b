# Twelve layers whose weights start at standard deviation 1: the gradient grows from layer to layer.
# truth: exploding-gradient warning body.0.weight body.2.weight
import torch
from torch import nn


def body(width, depth):
    layers = []
    for _ in range(depth):
        layer = nn.Linear(width, width)  # exploding-gradient
        nn.init.normal_(layer.weight)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers)


torch.manual_seed(12)
model = nn.Sequential()
model.add_module("body", body(32, 12))
model.add_module("head", nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for _ in range(25):
    x = torch.randn(64, 32)
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
