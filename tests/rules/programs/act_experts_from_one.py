# A mixture starts all experts as copies of one, stacked in a tensor, and mixes them evenly: they stay copies.
# truth: symmetric-init warning experts
import torch
from torch import nn


class Mixture(nn.Module):
    def __init__(self, features=6, count=4):
        super().__init__()
        one = 0.3 * torch.randn(features, 3)
        self.experts = nn.Parameter(one.expand(count, -1, -1).clone())  # symmetric-init
        self.register_buffer("share", torch.full((count,), 1.0 / count))

    def forward(self, x):
        return torch.einsum("bf,efo,e->bo", x, self.experts, self.share)


torch.manual_seed(0)
model = Mixture()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(25):
    x = torch.randn(32, 6)
    loss = nn.functional.mse_loss(model(x), x[:, :3] * x[:, 3:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
