# The critic steps between the two backward passes that train a shared encoder, which steps once on their sum.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(27)
encoder, critic, actor = nn.Linear(8, 6), nn.Linear(6, 1), nn.Linear(6, 2)
opt_encoder = torch.optim.Adam(encoder.parameters(), lr=1e-3)
opt_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
opt_actor = torch.optim.Adam(actor.parameters(), lr=1e-3)
for _ in range(25):
    x = torch.randn(32, 8)
    opt_encoder.zero_grad()
    opt_critic.zero_grad()
    opt_actor.zero_grad()
    (critic(encoder(x)) - x.norm(dim=1, keepdim=True)).pow(2).mean().backward()
    opt_critic.step()
    nn.functional.cross_entropy(actor(encoder(x)), (x[:, 0] > 0).long()).backward()
    opt_actor.step()
    opt_encoder.step()
