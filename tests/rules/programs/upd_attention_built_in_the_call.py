# The projection is put on self in each forward, sized by the input: the optimizer holds the one of the constructor.
# truth: recreated-each-forward error project.weight project.bias
import torch
from torch import nn


class Pooler(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.score = nn.Linear(width, 1)
        self.project = nn.Linear(width, 2)

    def forward(self, x):
        weights = self.score(x).softmax(dim=1)
        pooled = (weights * x).sum(dim=1)
        self.project = nn.Linear(pooled.shape[-1], 2)  # recreated-each-forward
        return self.project(pooled)


torch.manual_seed(8)
model = Pooler(6)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(20):
    x = torch.randn(16, 5, 6)
    loss = nn.functional.cross_entropy(model(x), (x.mean(dim=(1, 2)) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
