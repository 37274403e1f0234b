# Five layers on one fixed batch of labels that are mostly noise: the loss hardly falls, and nothing is broken.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 6)
y = ((x[:, 0] + 4.0 * torch.randn(512)) > 0).long()
layers = [nn.Linear(6, 24), nn.ReLU()]
for _ in range(3):
    layers += [nn.Linear(24, 24), nn.ReLU()]
model = nn.Sequential(*layers, nn.Linear(24, 2))
for layer in model:
    if isinstance(layer, nn.Linear):
        nn.init.kaiming_normal_(layer.weight)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for _ in range(60):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
