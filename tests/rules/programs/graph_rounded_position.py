# A pointer network reads a table at a position that is cast to an integer.
# truth: nondifferentiable-op error pointer.weight pointer.bias
import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.pointer = nn.Linear(3, 1)
        self.table = nn.Parameter(torch.randn(16, 4))
        self.out = nn.Linear(4, 1)

    def forward(self, x):
        position = 15 * torch.sigmoid(self.pointer(x)).squeeze(1)
        row = position.long()  # nondifferentiable-op
        return self.out(self.table[row])


torch.manual_seed(6)
model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(15):
    x = torch.randn(32, 3)
    loss = (model(x) - x[:, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
