# A codebook that is moved by running averages of what it was matched with; the encoder learns straight through it.
# truth: quiet
import torch
from torch import nn


class Codes(nn.Module):
    def __init__(self, size=8, width=4):
        super().__init__()
        self.encode = nn.Linear(6, width)
        self.codebook = nn.Parameter(torch.randn(size, width))
        self.decode = nn.Linear(width, 6)

    def forward(self, x):
        z = self.encode(x)
        nearest = torch.cdist(z, self.codebook).argmin(1)
        code = self.codebook[nearest].detach()
        with torch.no_grad():
            for index in nearest.unique():
                self.codebook[index].lerp_(z[nearest == index].mean(0), 0.1)
        commitment = (z - code).pow(2).mean()
        return self.decode(z + (code - z).detach()), commitment


torch.manual_seed(22)
model = Codes()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(15):
    x = torch.randn(64, 6)
    rebuilt, commitment = model(x)
    loss = (rebuilt - x).pow(2).mean() + 0.25 * commitment
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
