# A teacher inside the model, held by the optimizer by habit; its output is detached.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(0)


class Distill(nn.Module):
    def __init__(self):
        super().__init__()
        self.teacher = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 4))
        self.student = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))

    def forward(self, x):
        t = self.teacher(x).detach()
        return nn.functional.mse_loss(self.student(x), t)


m = Distill()
opt = torch.optim.Adam(m.parameters(), 1e-2)
for _ in range(8):
    loss = m(torch.randn(16, 4))
    opt.zero_grad()
    loss.backward()
    opt.step()
