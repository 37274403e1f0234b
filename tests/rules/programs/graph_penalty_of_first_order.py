# A gradient penalty whose gradient was taken without create_graph.
# truth: detached warning
import torch
from torch import nn

torch.manual_seed(35)
critic = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-2)
for _ in range(12):
    real, fake = torch.randn(32, 3) + 1, torch.randn(32, 3)
    between = (real + fake).div(2).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between)  # detached
    penalty = (slope.norm(dim=1) - 1).pow(2).mean()
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
