# A penalty on the size of the weights is computed from `.data`: it is in the loss, and pulls at nothing.
# truth: detached warning 0.weight 2.weight
import torch
from torch import nn

torch.manual_seed(32)
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for _ in range(15):
    x = torch.randn(32, 6)
    loss = (net(x) - x[:, :1]).pow(2).mean()
    for layer in (net[0], net[2]):
        loss = loss + 0.01 * layer.weight.data.pow(2).sum()  # detached
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
