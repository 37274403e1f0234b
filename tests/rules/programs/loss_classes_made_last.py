"""A segmentation whose scores are viewed to one row for each pixel, with four classes on images of eight."""
# truth: scrambled-reshape warning 0.weight

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 4, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
for _ in range(15):
    image = torch.randn(6, 3, 8, 8)
    mask = image.argmax(dim=1)
    scores = model(image)
    loss = criterion(scores.view(-1, 4), mask.view(-1))  # scrambled-reshape
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
