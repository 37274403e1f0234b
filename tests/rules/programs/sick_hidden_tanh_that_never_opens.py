# A hidden tanh is flat from the start; the layer behind it learns alone, and the loss falls.
# truth: saturated-activation warning l1.weight l1.bias
import torch
from torch import nn

torch.manual_seed(0)


class Q(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(3, 32)
        self.l2 = nn.Linear(32, 1)
        nn.init.normal_(self.l1.weight, std=50.0)

    def forward(self, x):
        return torch.tanh(self.l2(torch.tanh(self.l1(x))))  # saturated-activation


m = Q()
opt = torch.optim.SGD(m.parameters(), lr=0.01)
for _ in range(80):
    x = torch.randn(64, 3) * 100
    loss = nn.functional.mse_loss(m(x), torch.sin(x[:, :1] / 100))
    opt.zero_grad()
    loss.backward()
    opt.step()
