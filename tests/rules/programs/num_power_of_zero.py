# A learned exponent on counts that may be 0: the slope of 0 ** p is 0 * log(0).
# truth: nonfinite-gradient error scale.p scale.gain
import torch
from torch import nn


class Power(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(9))
        self.p = nn.Parameter(torch.tensor(0.5))

    def forward(self, counts):
        return (self.gain * counts).pow(self.p)  # nonfinite-gradient


class Assay(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = Power()
        self.read = nn.Linear(9, 3)

    def forward(self, counts):
        return self.read(self.scale(counts))


torch.manual_seed(7)
model = Assay()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(12):
    counts = torch.poisson(torch.full((20, 9), 1.5))
    loss = nn.functional.cross_entropy(model(counts), counts[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
