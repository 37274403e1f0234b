# A physical parameter goes through numpy.interp as a number.
# truth: detached error focal
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)


class Lens(nn.Module):
    def __init__(self):
        super().__init__()
        self.focal = nn.Parameter(torch.tensor(1.5))
        self.gain = nn.Parameter(torch.tensor(1.0))
        self.grid = np.linspace(0, 3, 20)
        self.table = np.sin(self.grid)

    def phase(self):
        return np.interp(self.focal.item(), self.grid, self.table)  # detached

    def forward(self, x):
        return self.gain * torch.cos(x * torch.tensor(self.phase(), dtype=torch.float32))


m = Lens()
opt = torch.optim.Adam(m.parameters(), 1e-2)
for _ in range(6):
    x = torch.randn(32)
    loss = (m(x) - torch.cos(0.5 * x)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
