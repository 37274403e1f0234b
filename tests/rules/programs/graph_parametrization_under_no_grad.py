# A low-rank parametrization computes its part under no_grad.
# truth: no-grad-region error
import torch
from torch import nn
from torch.nn.utils import parametrize

torch.manual_seed(0)


class LowRank(nn.Module):
    def __init__(self, o, i):
        super().__init__()
        self.u, self.v = nn.Parameter(torch.randn(o, 2) * 0.1), nn.Parameter(torch.randn(2, i) * 0.1)

    def forward(self, w):
        with torch.no_grad():  # no-grad-region
            delta = self.u @ self.v
        return w + delta


lin = nn.Linear(4, 4)
parametrize.register_parametrization(lin, "weight", LowRank(4, 4))
opt = torch.optim.Adam(lin.parameters(), 1e-2)
for _ in range(6):
    x = torch.randn(8, 4)
    loss = (lin(x) - x.flip(1)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
