# A decay that was written for a rate of 1e-4 is kept when the rate becomes 0.05.
# truth: decay-dominates error 0.weight 2.weight 4.weight
import torch
from torch import nn

torch.manual_seed(14)
model = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 4))
decay, plain = [p for p in model.parameters() if p.ndim > 1], [p for p in model.parameters() if p.ndim < 2]
groups = [{"params": decay, "weight_decay": 1.5}, {"params": plain, "weight_decay": 0.0}]
optimizer = torch.optim.SGD(groups, lr=0.05, momentum=0.9)  # decay-dominates
for _ in range(60):
    x = torch.randn(64, 8)
    loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
