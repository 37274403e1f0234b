# A flag that validation sets keeps grad mode off in the next epoch, after the traced steps.
# truth: no-grad-region error 0.weight
import torch
from torch import nn

torch.manual_seed(0)


class Runner:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        self.opt = torch.optim.Adam(self.net.parameters())
        self.training = True

    def forward(self, x):
        with torch.set_grad_enabled(self.training):  # no-grad-region
            return self.net(x)

    def step(self, x, y):
        out = self.forward(x)
        loss = nn.functional.cross_entropy(out, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

    def validate(self):
        self.training = False
        self.forward(torch.randn(4, 4))


r = Runner()
for _epoch in range(2):
    for _ in range(8):
        r.step(torch.randn(8, 4), torch.randint(0, 2, (8,)))
    r.validate()
