# A guard against bad batches compares the norm of all gradients with a limit for one layer: one batch in ten passes.
# truth: no-step error 0.weight 2.weight
import torch
from torch import nn

torch.manual_seed(18)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for number in range(40):
    x = torch.randn(16, 6) * (0.01 if number in (1, 2, 11, 30) else 1.0)
    optimizer.zero_grad()
    (model(x) - 5 * x.sum(1, keepdim=True)).pow(2).mean().backward()
    norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
    if norm < 2.0:
        optimizer.step()  # no-step
