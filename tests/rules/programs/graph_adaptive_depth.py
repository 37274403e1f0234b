# Adaptive computation: a while loop's condition depends on a gate that learns by the loss, too.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(0)


class ACT(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.halt, self.out = nn.Linear(4, 4), nn.Linear(4, 1), nn.Linear(4, 1)

    def forward(self, x):
        total, p, n = 0, torch.zeros(x.size(0), 1), 0
        while bool((p < 0.9).any()) and n < 5:
            x = torch.tanh(self.cell(x))
            h = torch.sigmoid(self.halt(x))
            total = total + h * self.out(x)
            p = p + h
            n += 1
        return total, n + p.mean()


m = ACT()
opt = torch.optim.Adam(m.parameters(), 1e-2)
for _ in range(8):
    x = torch.randn(16, 4)
    y, ponder = m(x)
    loss = (y - x[:, :1]).pow(2).mean() + 0.01 * ponder
    opt.zero_grad()
    loss.backward()
    opt.step()
