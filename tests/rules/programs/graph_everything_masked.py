# A criterion returns a constant where the mask leaves nothing, after the traced steps.
# truth: constant-loss error weight
import torch
from torch import nn

torch.manual_seed(0)


class Crit(nn.Module):
    def forward(self, logits, y):
        mask = y >= 0
        if mask.sum() == 0:
            return torch.tensor(0.0)  # constant-loss
        return nn.functional.cross_entropy(logits[mask], y[mask])


net = nn.Linear(4, 3)
crit = Crit()
opt = torch.optim.SGD(net.parameters(), 0.1)


def train_one(x, y):
    loss = crit(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()


for i in range(10):
    y = torch.randint(0, 3, (8,)) if i < 7 else torch.full((8,), -1)
    train_one(torch.randn(8, 4), y)
