# The model carries a running average of its weights, updated through `.data` and used for evaluation only.
# truth: quiet
import copy

import torch
from torch import nn


class Averaged(nn.Module):
    def __init__(self):
        super().__init__()
        self.live = nn.Linear(5, 2)
        self.average = copy.deepcopy(self.live)

    def forward(self, x):
        return (self.live if self.training else self.average)(x)

    def update(self, rate=0.1):
        for slow, fast in zip(self.average.parameters(), self.live.parameters(), strict=True):
            slow.data.lerp_(fast.data, rate)


torch.manual_seed(16)
model = Averaged()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(30):
    model.train()
    x = torch.randn(16, 5)
    loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.update()
    if step % 10 == 9:
        model.eval()
        with torch.no_grad():
            model(x)
