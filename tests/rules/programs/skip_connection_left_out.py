# The skip layers of a small encoder-decoder are made and never called: `forward` adds the raw features.
# truth: unused-parameter warning skips.0.weight skips.1.weight
import torch
from torch import nn


class Denoiser(nn.Module):
    def __init__(self, width=6, depth=2):
        super().__init__()
        self.down = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.skips = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(depth))  # unused-parameter
        self.up = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        kept = []
        for layer in self.down:
            x = torch.tanh(layer(x))
            kept.append(x)
        for layer in self.up:
            x = layer(x) + kept.pop()
        return x


def main():
    torch.manual_seed(10)
    model = Denoiser()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(20):
        clean = torch.randn(16, 6)
        loss = (model(clean + 0.1 * torch.randn_like(clean)) - clean).abs().mean()
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()


main()
