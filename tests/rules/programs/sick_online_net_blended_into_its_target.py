# The soft update runs the wrong way round: the net that learns is blended into its frozen target.
# truth: weights-overwritten error q.0.weight q.2.weight
import copy

import torch
from torch import nn


class Dqn(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
        self.target = copy.deepcopy(self.q)
        self.target.requires_grad_(False)

    def sync(self, tau):
        with torch.no_grad():
            for p, t in zip(self.q.parameters(), self.target.parameters(), strict=True):
                p.mul_(1 - tau).add_(tau * t)  # weights-overwritten


torch.manual_seed(0)
m = Dqn()
opt = torch.optim.Adam(m.q.parameters(), 1e-3)
for _ in range(100):
    o = torch.randn(32, 4)
    a = torch.randint(0, 2, (32, 1))
    r = o[:, :1] * (a * 2 - 1)
    with torch.no_grad():
        y = r + 0.9 * m.target(torch.randn(32, 4)).max(1, keepdim=True)[0]
    loss = nn.functional.smooth_l1_loss(m.q(o).gather(1, a), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    m.sync(0.99)
