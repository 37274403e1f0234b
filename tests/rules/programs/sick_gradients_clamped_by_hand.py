# Gradients are clamped one by one to a limit that leaves nothing of them.
# truth: clipped-away error 0.weight 2.weight
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
CLIP = 1e-6


def step(loss):
    opt.zero_grad()
    loss.backward()
    for p in net.parameters():
        p.grad.data.clamp_(-CLIP, CLIP)  # clipped-away
    opt.step()


for _ in range(80):
    x = torch.randn(64, 8)
    step(nn.functional.cross_entropy(net(x), x[:, :3].argmax(1)))
