# Six sigmoid layers on one fixed batch: the loss settles at ln 2 in a few steps and the last layers rest there too.
# truth: vanishing-gradient warning enter.weight hidden.0.weight
import torch
from torch import nn


class Tower(nn.Module):
    def __init__(self, depth=5, width=24):
        super().__init__()
        self.enter = nn.Linear(8, width)
        self.hidden = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.leave = nn.Linear(width, 2)

    def forward(self, x):
        x = torch.sigmoid(self.enter(x))
        for layer in self.hidden:
            x = torch.sigmoid(layer(x))  # vanishing-gradient
        return self.leave(x)


torch.manual_seed(0)
x = torch.randn(200, 8)
y = (x[:, 0] * x[:, 1] > 0).long()
model = Tower()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(100):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
