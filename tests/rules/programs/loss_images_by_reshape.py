"""Images with channels last are reshaped to channels first in the code that prepares them."""
# truth: scrambled-reshape warning

import torch
import torch.nn.functional as F
from torch import nn


def load(count):
    label = torch.randint(0, 3, (count,))
    image = torch.randn(count, 10, 10, 3) * 0.2
    image[torch.arange(count), :, :, label] += 1.0
    return image.reshape(-1, 3, 10, 10), label  # scrambled-reshape


torch.manual_seed(0)
images, labels = load(120)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    for rows in torch.randperm(120).split(30):
        loss = F.cross_entropy(model(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
