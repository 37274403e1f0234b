# A module was given a method `backward` that clips the gradient. Nothing calls it.
# truth: custom-backward warning embed.weight
import torch
from torch import nn


class Clip(nn.Module):
    def forward(self, x):
        return x.clone()

    def backward(self, grad_output):  # custom-backward
        return grad_output.clamp(-0.01, 0.01)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(5, 8)
        self.clip = Clip()
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.clip(torch.tanh(self.embed(x))))


torch.manual_seed(36)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for _ in range(12):
    x = torch.randn(32, 5)
    loss = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
