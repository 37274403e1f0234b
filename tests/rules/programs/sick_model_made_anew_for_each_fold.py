# Each fold begins with a new model; the optimizer is that of the first one.
# truth: stale-optimizer error 0.weight 2.weight
import torch
from torch import nn

torch.manual_seed(0)


def build():
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))


class Exp:
    def __init__(self):
        self.model = build()
        self.opt = torch.optim.Adam(self.model.parameters(), 1e-2)  # stale-optimizer

    def reset(self):
        self.model = build()

    def fold(self, x, y):
        for _ in range(20):
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()


e = Exp()
x = torch.randn(90, 6)
y = (x[:, 0] > 0).long()
for k in range(3):
    if k:
        e.reset()
    e.fold(x, y)
