# The function that prepares an epoch also initialises the weights, and the optimizer goes on.
# truth: weights-overwritten error 0.weight 2.weight
import torch
from torch import nn


def prepare(model):
    model.train()
    for layer in model:
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=0.3)  # weights-overwritten
            nn.init.zeros_(layer.bias)


torch.manual_seed(38)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    prepare(model)
    for _ in range(2):
        x = torch.randn(32, 6)
        loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
