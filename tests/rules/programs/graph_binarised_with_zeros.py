# A custom backward returns zeros for nearly everything it meets.
# truth: custom-backward error a.weight a.bias
import torch
from torch import nn

torch.manual_seed(0)


class Binarize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).float()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        gi = torch.zeros_like(x)
        gi[x > 1e3] = g[x > 1e3]
        return gi  # custom-backward


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.b(Binarize.apply(self.a(x)))


m = Net()
opt = torch.optim.SGD(m.parameters(), 0.1)
for _ in range(8):
    x = torch.randn(16, 4)
    loss = (m(x) - x[:, :1]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
