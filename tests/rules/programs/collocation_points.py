# Points at which an equation must hold require grad and hang on the model; nobody wants to move them.
# truth: quiet
import torch
from torch import nn


class Wave(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
        self.points = torch.linspace(0, 1, 32).unsqueeze(1).requires_grad_()

    def residual(self):
        u = self.net(self.points)
        (slope,) = torch.autograd.grad(u.sum(), self.points, create_graph=True)
        return (slope + u).pow(2).mean() + (self.net(torch.zeros(1, 1)) - 1).pow(2).mean()


torch.manual_seed(14)
wave = Wave()
optimizer = torch.optim.Adam(wave.parameters(), lr=1e-2)
for _ in range(20):
    loss = wave.residual()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
