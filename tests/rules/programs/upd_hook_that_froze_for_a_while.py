# A hook keeps the table as it is while the rest warms up; the handle that would remove it is thrown away.
# truth: gradient-hook error table.weight
import torch
from torch import nn


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 6)
        self.mlp = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))

    def forward(self, ids):
        return self.mlp(self.table(ids)).squeeze(1)


def hold(grad):
    return torch.zeros_like(grad)


torch.manual_seed(10)
model = Recommender()
model.table.weight.register_hook(hold)  # gradient-hook
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(24):
    ids = torch.randint(0, 20, (32,))
    loss = nn.functional.mse_loss(model(ids), (ids % 2).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
