# Random network distillation: the fixed target is held by the optimizer by habit.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(0)


class RND(nn.Module):
    def __init__(self):
        super().__init__()
        self.target = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
        self.predictor = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 8))

    def bonus(self, s):
        with torch.no_grad():
            t = self.target(s)
        return (self.predictor(s) - t).pow(2).mean(-1)


rnd = RND()
opt = torch.optim.Adam(rnd.parameters(), lr=1e-3)
for _ in range(10):
    s = torch.randn(32, 4)
    loss = rnd.bonus(s).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
