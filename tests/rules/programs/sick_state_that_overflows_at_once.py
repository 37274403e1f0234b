# A recurrent state of which the first gradient throws the weights so far that the second step is NaN.
# truth: exploding-gradient error wx.weight wh.weight
import torch
from torch import nn


class R(nn.Module):
    def __init__(self, h=20):
        super().__init__()
        self.wx = nn.Linear(2, h)
        self.wh = nn.Linear(h, h)
        nn.init.normal_(self.wh.weight, std=0.45)
        self.o = nn.Linear(h, 1)

    def forward(self, x):
        h = torch.zeros(x.shape[0], 20)
        for t in range(x.shape[1]):
            h = torch.relu(self.wx(x[:, t]) + self.wh(h))  # exploding-gradient
        return self.o(h)


torch.manual_seed(0)
m = R()
opt = torch.optim.SGD(m.parameters(), lr=1e-3)
for _ in range(30):
    x = torch.rand(32, 30, 2)
    loss = nn.functional.mse_loss(m(x), x[:, :, 0].sum(1, keepdim=True))
    opt.zero_grad()
    loss.backward()
    opt.step()
