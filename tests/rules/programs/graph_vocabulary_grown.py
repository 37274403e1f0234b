# New words make the embedding grow when the optimizer exists already.
# truth: stale-optimizer error words.weight
import torch
from torch import nn


class Bag(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.words = nn.Embedding(size, 6)
        self.out = nn.Linear(6, 2)

    def forward(self, ids):
        return self.out(self.words(ids).mean(1))

    def grow(self, size):
        old = self.words.weight.detach()
        self.words = nn.Embedding(size, 6)
        with torch.no_grad():
            self.words.weight[: len(old)] = old


torch.manual_seed(19)
model = Bag(10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)  # stale-optimizer
for size in (10, 14):
    if size > 10:
        model.grow(size)
    for _ in range(10):
        ids = torch.randint(0, size, (32, 4))
        loss = nn.functional.cross_entropy(model(ids), (ids[:, 0] > 4).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
