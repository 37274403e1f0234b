# A policy gradient keeps its log-probabilities as numbers; actions and rewards depend on it, too.
# truth: detached error weight
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)


class Agent:
    def __init__(self):
        self.policy = nn.Linear(4, 2)
        self.opt = torch.optim.Adam(self.policy.parameters(), 1e-2)
        self.memory = []

    def act(self, s):
        d = Categorical(logits=self.policy(s))
        a = d.sample()
        self.memory.append((d.log_prob(a).item(), float(a == 0)))  # detached
        return a

    def learn(self):
        lp = torch.tensor([m[0] for m in self.memory], requires_grad=True)
        r = torch.tensor([m[1] for m in self.memory])
        loss = -(lp * (r - r.mean())).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.memory.clear()


ag = Agent()
for _ep in range(6):
    for _t in range(6):
        ag.act(torch.randn(4))
    ag.learn()
