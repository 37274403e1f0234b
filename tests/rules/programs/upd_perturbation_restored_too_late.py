# Weights are perturbed for the gradient and restored from a backup, but only after the step, which is lost with it.
# truth: weights-overwritten error 0.weight 0.bias 2.weight 2.bias
import torch
from torch import nn


class Robust:
    def __init__(self, model, radius=0.01):
        self.model, self.radius, self.backup = model, radius, {}

    def perturb(self):
        for name, p in self.model.named_parameters():
            self.backup[name] = p.data.clone()
            p.data.add_(self.radius * torch.randn_like(p))

    def restore(self):
        for name, p in self.model.named_parameters():
            p.data = self.backup[name]  # weights-overwritten


torch.manual_seed(5)
model = nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
robust = Robust(model)
for _ in range(24):
    x = torch.randn(32, 5)
    robust.perturb()
    loss = nn.functional.cross_entropy(model(x), (x[:, 0] > x[:, 1]).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    robust.restore()
