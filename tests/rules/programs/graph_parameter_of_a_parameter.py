# A scaled weight is wrapped into a new nn.Parameter in every forward pass, so that the scale never learns.
# truth: detached error scale
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(5, 5)
        self.scale = nn.Parameter(torch.ones(5))
        self.out = nn.Linear(5, 1)

    def forward(self, x):
        gain = nn.Parameter(self.scale.exp())  # detached
        return self.out(torch.tanh(self.base(x)) * gain)


torch.manual_seed(3)
model = Scaled()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(15):
    x = torch.randn(32, 5)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
