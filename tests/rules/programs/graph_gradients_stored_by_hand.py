# autograd.grad, whose gradients the program stores itself.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(8):
    x = torch.randn(16, 4)
    loss = (net(x) - x[:, :1]).pow(2).mean()
    for p, g in zip(net.parameters(), torch.autograd.grad(loss, list(net.parameters())), strict=False):
        p.grad = g
    opt.step()
