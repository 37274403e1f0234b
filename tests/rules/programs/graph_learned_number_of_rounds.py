# A parameter only counts the rounds of a loop.
# truth: detached error depth
import torch
from torch import nn

torch.manual_seed(0)


class Diffuse(nn.Module):
    def __init__(self):
        super().__init__()
        self.depth = nn.Parameter(torch.tensor(2.6))
        self.step = nn.Linear(4, 4)

    def forward(self, x):
        for _ in range(int(self.depth.round())):  # detached
            x = x + 0.1 * self.step(x)
        return x


m = Diffuse()
opt = torch.optim.Adam(m.parameters(), 1e-2)
for _ in range(6):
    x = torch.randn(8, 4)
    loss = (m(x) - 2 * x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
