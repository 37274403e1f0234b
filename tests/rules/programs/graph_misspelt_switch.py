# A frozen scale is to be switched on by a misspelt attribute.
# truth: frozen-parameter error scale
import torch
from torch import nn

torch.manual_seed(0)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.ones(4), requires_grad=False)

    def forward(self, x):
        return self.fc(x) * self.scale


m = Scaled()
m.scale.require_grad = True  # frozen-parameter
opt = torch.optim.Adam(m.parameters(), 1e-2)
for _ in range(8):
    x = torch.randn(8, 4)
    loss = (m(x) - 2 * x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
