# A learned position code is moved to its type in the line that makes it, and the model keeps the result.
# truth: nonleaf-parameter error code
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.code = nn.Parameter(torch.zeros(1, 5)).expand(3, 5)  # nonleaf-parameter
        self.head = nn.Linear(5, 1)

    def forward(self, x):
        return self.head(x + self.code)


torch.manual_seed(42)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(12):
    x = torch.randn(3, 5)
    loss = (net(x) - x[:, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
