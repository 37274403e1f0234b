# Every bias starts at -10: no ReLU ever fires.
# truth: dead-relu error trunk.0.weight trunk.2.weight
import torch
from torch import nn


def init(m):
    if isinstance(m, nn.Linear):
        nn.init.xavier_normal_(m.weight)
        nn.init.constant_(m.bias, -10.0)  # dead-relu


torch.manual_seed(0)


class Enc(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.head = nn.Linear(32, 2)
        self.trunk.apply(init)

    def forward(self, x):
        return self.head(self.trunk(x))


m = Enc()
opt = torch.optim.Adam(m.parameters(), 1e-3)
for _ in range(60):
    x = torch.randn(32, 7)
    loss = nn.functional.cross_entropy(m(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
