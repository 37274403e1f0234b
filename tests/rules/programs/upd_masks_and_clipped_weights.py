# A pruned network whose mask is written again after each step, and a critic whose weights are clipped.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(24)
pruned = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 1))
critic = nn.Sequential(nn.Linear(1, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
masks = {name: (p.abs() > p.abs().median()).float() for name, p in pruned.named_parameters() if p.dim() > 1}
opt_pruned = torch.optim.Adam(pruned.parameters(), lr=1e-2)
opt_critic = torch.optim.RMSprop(critic.parameters(), lr=5e-3)
for _ in range(30):
    x = torch.randn(32, 8)
    real, fake = x[:, :1] + 2, pruned(x)
    opt_critic.zero_grad()
    (critic(fake.detach()).mean() - critic(real).mean()).backward()
    opt_critic.step()
    with torch.no_grad():
        for p in critic.parameters():
            p.clamp_(-0.1, 0.1)
    opt_pruned.zero_grad()
    (-critic(fake).mean() + (fake - real).pow(2).mean()).backward()
    opt_pruned.step()
    with torch.no_grad():
        for name, p in pruned.named_parameters():
            if name in masks:
                p.mul_(masks[name])
