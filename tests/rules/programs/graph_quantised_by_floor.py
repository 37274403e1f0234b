# A learned step size is used inside a floor: the gradient arrives, and is zero.
# truth: nondifferentiable-op error quantise.offset
import torch
from torch import nn


class Quantiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return torch.floor(4 * x + self.offset) / 4  # nondifferentiable-op


torch.manual_seed(8)
quantise, decode = Quantiser(), nn.Linear(6, 6)
optimizer = torch.optim.SGD([*quantise.parameters(), *decode.parameters()], lr=0.1)
for _ in range(15):
    x = torch.randn(32, 6)
    loss = (decode(quantise(x)) - x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
