# The critic is frozen for the generator's step, and never thawed for its own.
# truth: frozen-parameter error D.0.weight D.2.bias
import torch
from torch import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
og = torch.optim.Adam(G.parameters(), lr=1e-3)
od = torch.optim.Adam(D.parameters(), lr=1e-3)


def set_requires_grad(net, flag):
    for p in net.parameters():
        p.requires_grad = flag  # frozen-parameter


for _step in range(6):
    set_requires_grad(D, False)
    loss_g = -D(G(torch.randn(8, 4))).mean()
    og.zero_grad()
    loss_g.backward()
    og.step()
    loss_d = D(G(torch.randn(8, 4)).detach()).mean() - D(torch.randn(8, 2)).mean()
    od.zero_grad()
    loss_d.backward()
    od.step()
