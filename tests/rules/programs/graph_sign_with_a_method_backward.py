# A straight-through sign is written as a method `backward` of a module.
# truth: custom-backward error 0.weight
import torch
from torch import nn

torch.manual_seed(0)


class SignSTE(nn.Module):
    def forward(self, x):
        return torch.sign(x)

    def backward(self, grad):  # custom-backward
        return grad.clamp(-1, 1)


m = nn.Sequential(nn.Linear(4, 8), SignSTE(), nn.Linear(8, 1))
opt = torch.optim.SGD(m.parameters(), 0.1)
for _ in range(8):
    x = torch.randn(16, 4)
    loss = (m(x) - x[:, :1]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
