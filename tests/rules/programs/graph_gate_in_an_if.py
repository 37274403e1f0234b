# A gate decides by an if whether a block runs.
# truth: nondifferentiable-op error gate.weight gate.bias
import torch
from torch import nn

torch.manual_seed(0)


class Skip(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.block, self.out = nn.Linear(4, 1), nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x):
        use = self.gate(x).mean() > 0  # nondifferentiable-op
        if use:
            x = x + self.block(x)
        return self.out(x) + 0 * self.block(x).sum()


m = Skip()
opt = torch.optim.Adam(m.parameters(), 1e-2)
for _ in range(8):
    x = torch.randn(8, 4)
    loss = (m(x) - x[:, :1]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
