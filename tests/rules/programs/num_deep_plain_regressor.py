# A deep regressor of equal blocks without shortcuts, started too small: the first blocks get next to nothing.
# truth: vanishing-gradient warning stem.weight blocks.0.mix.weight blocks.1.mix.weight
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)
        nn.init.normal_(self.mix.weight, std=0.03)

    def forward(self, h):
        return torch.tanh(self.mix(h))  # vanishing-gradient


class Regressor(nn.Module):
    def __init__(self, width=24, depth=8):
        super().__init__()
        self.stem = nn.Linear(6, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        h = self.stem(x)
        for block in self.blocks:
            h = block(h)
        return self.head(h).squeeze(1)


torch.manual_seed(4)
model = Regressor()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(40):
    x = torch.randn(64, 6)
    loss = nn.functional.mse_loss(model(x), x[:, 0] * x[:, 1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
