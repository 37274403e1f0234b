# Both losses are scaled; one optimizer is stepped by the scaler, the other by hand.
# truth: unscaled-step error critic.weight
import torch
from torch import nn

torch.manual_seed(9)
generator, critic = nn.Linear(3, 4), nn.Linear(4, 1)
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(15):
    noise = torch.randn(16, 3)
    opt_c.zero_grad()
    loss_c = (critic(generator(noise).detach()) - 1).pow(2).mean() + critic(torch.randn(16, 4)).pow(2).mean()
    scaler.scale(loss_c).backward()
    opt_c.step()  # unscaled-step
    opt_g.zero_grad()
    scaler.scale(critic(generator(noise)).pow(2).mean()).backward()
    scaler.step(opt_g)
    scaler.update()
