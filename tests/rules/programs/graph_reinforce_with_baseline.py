# REINFORCE with a learned baseline; rewards are numbers that depend on the action.
# truth: quiet
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
pi = nn.Linear(4, 3)
vf = nn.Linear(4, 1)
opt = torch.optim.Adam([*pi.parameters(), *vf.parameters()], 1e-2)
for _ep in range(6):
    logs, vals, rews = [], [], []
    for _t in range(8):
        s = torch.randn(4)
        d = Categorical(logits=pi(s))
        a = d.sample()
        logs.append(d.log_prob(a))
        vals.append(vf(s))
        rews.append(float(a.item() == 1))
    R = torch.tensor(rews)
    V = torch.cat(vals)
    adv = R - V.detach()
    loss = -(torch.stack(logs) * adv).mean() + (V - R).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
