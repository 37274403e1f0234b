# An image is changed until a network, which is never trained, sees what it should.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(21)
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(4 * 6 * 6, 3))
image = torch.zeros(1, 1, 8, 8, requires_grad=True)
optimizer = torch.optim.Adam([image], lr=0.05)
for _ in range(20):
    loss = nn.functional.cross_entropy(net(image), torch.tensor([1])) + 0.01 * image.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
