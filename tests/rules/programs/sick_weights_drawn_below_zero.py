# Weights between -1 and 0 on inputs above 0: a clamp at 0 lets nothing through.
# truth: dead-relu error a.weight a.bias
import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(5, 20)
        self.b = nn.Linear(20, 1)

    def forward(self, x):
        return self.b(torch.clamp(self.a(x), min=0))


m = Net()
with torch.no_grad():
    m.a.weight.uniform_(-1, 0)  # dead-relu
opt = torch.optim.Adam(m.parameters(), 1e-2)
for _ in range(60):
    x = torch.rand(32, 5) + 0.3
    loss = nn.functional.mse_loss(m(x), x.sum(1, keepdim=True))
    opt.zero_grad()
    loss.backward()
    opt.step()
