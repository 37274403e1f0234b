# All parameters are filled with one constant through `.data`.
# truth: symmetric-init warning enc.0.weight dec.weight
import torch
from torch import nn

torch.manual_seed(0)


class AE(nn.Module):
    def __init__(self, d=10, k=6):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, k), nn.Sigmoid())
        self.dec = nn.Linear(k, d)
        self.reset()

    def reset(self):
        for p in self.parameters():
            p.data.fill_(0.1)  # symmetric-init

    def forward(self, x):
        return self.dec(self.enc(x))


m = AE()
opt = torch.optim.Adam(m.parameters(), 1e-2)
for _ in range(60):
    x = torch.randn(32, 10)
    loss = nn.functional.mse_loss(m(x), x)
    opt.zero_grad()
    loss.backward()
    opt.step()
