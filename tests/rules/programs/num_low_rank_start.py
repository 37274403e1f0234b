# Low-rank adapters on a frozen base and a residual branch behind a gain of 0: both start at zero and leave it.
# truth: quiet
import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down, self.up = (
            nn.Linear(base.in_features, rank, bias=False),
            nn.Linear(rank, base.out_features, bias=False),
        )
        nn.init.zeros_(self.up.weight)
        self.gain = nn.Parameter(torch.zeros(1))
        self.branch = nn.Sequential(nn.Linear(base.out_features, base.out_features), nn.GELU())

    def forward(self, x):
        h = self.base(x) + self.up(self.down(x))
        return h + self.gain * self.branch(h)


torch.manual_seed(20)
model = nn.Sequential(Adapted(nn.Linear(8, 8)), nn.Tanh(), Adapted(nn.Linear(8, 3)))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
for _ in range(40):
    x = torch.randn(32, 8)
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
