"""A classifier that keeps its blocks in a plain list: the loss falls, and three of its five layers never learn."""

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, width=32, depth=3):
        super().__init__()
        self.stem = nn.Linear(8, width)
        self.blocks = [nn.Linear(width, width) for _ in range(depth)]
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        for block in self.blocks:
            x = x + torch.relu(block(x))
        return self.head(x)


torch.manual_seed(0)
inputs = torch.randn(512, 8)
labels = (inputs @ torch.randn(8, 4)).argmax(dim=1)
model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for _ in range(200):
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

print(f"final loss {loss.item():.3f}")
