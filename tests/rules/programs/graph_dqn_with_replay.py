# DQN: actions by argmax().item(), a replay buffer of numbers, a target that is copied now and then.
# truth: quiet
import copy
import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)


class Agent:
    def __init__(self):
        self.q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
        self.target = copy.deepcopy(self.q)
        self.opt = torch.optim.Adam(self.q.parameters(), 1e-3)
        self.memory = []

    def act(self, s):
        if random.random() < 0.3:
            return random.randrange(2)
        return self.q(torch.tensor(s)).argmax().item()

    def learn(self):
        batch = random.sample(self.memory, 16)
        s, a, r, s2 = (torch.tensor(v) for v in zip(*batch, strict=False))
        q = self.q(s).gather(1, a.unsqueeze(1)).squeeze(1)
        y = r + 0.9 * self.target(s2).max(1).values.detach()
        loss = nn.functional.smooth_l1_loss(q, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()


ag = Agent()
s = [0.1, 0.2, 0.3, 0.4]
for t in range(40):
    a = ag.act(s)
    s2 = [random.random() for _ in range(4)]
    ag.memory.append((s, a, float(a == (s[0] > 0.5)), s2))
    s = s2
    if t > 20:
        ag.learn()
    if t % 10 == 0:
        ag.target.load_state_dict(ag.q.state_dict())
