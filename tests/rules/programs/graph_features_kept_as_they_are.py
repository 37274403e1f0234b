# A linear probe: the body of the same model runs under no_grad, and the optimizer holds the head alone.
# truth: quiet
import torch
from torch import nn


class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 12), nn.ReLU())
        self.head = nn.Linear(12, 3)

    def forward(self, x):
        with torch.no_grad():
            features = self.body(x)
        return self.head(features)


torch.manual_seed(24)
model = Probe()
optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
for _ in range(12):
    x = torch.randn(32, 6)
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
