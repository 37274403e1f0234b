# The critic steps five times for each step of the generator, whose gradients are cleared at the top of every turn.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(31)
generator, critic = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 12), nn.LeakyReLU(), nn.Linear(12, 1))
opt_g = torch.optim.RMSprop(generator.parameters(), lr=1e-3)
opt_c = torch.optim.RMSprop(critic.parameters(), lr=1e-3)
for number in range(40):
    opt_g.zero_grad()
    opt_c.zero_grad()
    fake = generator(torch.randn(16, 3))
    if number % 5 == 4:
        critic(fake).mean().neg().backward()
        opt_g.step()
    else:
        (critic(fake.detach()).mean() - critic(torch.randn(16, 2)).mean()).tanh().backward()
        opt_c.step()
