# An auxiliary loss is computed and logged, and never added.
# truth: unreached-parameter warning depth.weight depth.bias
import torch
from torch import nn


class Scene(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(6, 10)
        self.label = nn.Linear(10, 3)
        self.depth = nn.Linear(10, 1)

    def forward(self, x):
        h = torch.relu(self.trunk(x))
        return self.label(h), self.depth(h)


torch.manual_seed(9)
model = Scene()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(12):
    x = torch.randn(32, 6)
    logits, depth = model(x)
    loss = nn.functional.cross_entropy(logits, x[:, :3].argmax(1))
    auxiliary = (depth.squeeze(1) - x[:, 0]).pow(2).mean()  # unreached-parameter
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), auxiliary.item())
