# Decays as strong as they are used: 0.3 decoupled at a small rate, 5e-3 through the gradient of SGD.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(32)
first = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
second = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
optimizers = [
    torch.optim.AdamW(first.parameters(), lr=5e-3, weight_decay=0.3),
    torch.optim.SGD(second.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-3),
]
for _ in range(60):
    x = torch.randn(64, 8)
    y = x[:, :4].argmax(1)
    for model, optimizer in zip((first, second), optimizers, strict=True):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
