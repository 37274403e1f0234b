# Steps are tried and taken back if the loss did not fall; it is compared with itself, so none is ever kept.
# truth: weights-overwritten error 0.weight 0.bias 2.weight 2.bias
import torch
from torch import nn


class Cautious:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def loss(self, x):
        return nn.functional.cross_entropy(self.model(x), (x[:, 0] > x[:, 1]).long())

    def step(self, x):
        backup = {name: p.data.clone() for name, p in self.model.named_parameters()}
        loss = self.loss(x)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            if not self.loss(x) < self.loss(x):
                for name, p in self.model.named_parameters():
                    p.data = backup[name]  # weights-overwritten


torch.manual_seed(5)
model = nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.Linear(16, 2))
cautious = Cautious(model, torch.optim.AdamW(model.parameters(), lr=1e-2))
for _ in range(24):
    cautious.step(torch.randn(32, 5))
