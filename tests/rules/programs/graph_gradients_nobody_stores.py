# autograd.grad returns the gradients and nobody stores them.
# truth: no-backward error 0.weight
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
x = torch.randn(64, 2)
y = x.prod(1, keepdim=True)
for _epoch in range(12):
    opt.zero_grad()
    loss = (net(x) - y).pow(2).mean()
    grads = torch.autograd.grad(loss, net.parameters())
    opt.step()  # no-backward
