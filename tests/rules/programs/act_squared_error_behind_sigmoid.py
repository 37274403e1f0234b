# A critic that was trained until its sigmoid is flat scores an actor by a squared error: the actor gets nothing.
# truth: saturated-activation warning actor.0.weight actor.2.weight
import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))
        self.squash = nn.Sigmoid()  # saturated-activation

    def forward(self, x):
        return self.squash(self.score(x))


torch.manual_seed(0)
critic = Critic()
actor = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3))
teach = torch.optim.Adam(critic.parameters(), lr=2e-2)
optimizer = torch.optim.SGD(actor.parameters(), lr=0.01)
for _ in range(60):
    good, bad = 4.0 + 0.1 * torch.randn(64, 3), actor(torch.randn(64, 4)).detach()
    loss = (critic(good) - 1.0).pow(2).mean() + critic(bad).pow(2).mean()
    teach.zero_grad()
    loss.backward()
    teach.step()
for _ in range(40):
    loss = (critic(actor(torch.randn(64, 4))) - 1.0).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
