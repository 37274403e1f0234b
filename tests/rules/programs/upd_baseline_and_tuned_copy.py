# A copy is tuned and both are tested: the difference is what the program is about.
# truth: quiet
import copy

import torch
from torch import nn


def score(model, x):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == x[:, :3].argmax(1)).float().mean().item()


torch.manual_seed(28)
base = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
tuned = copy.deepcopy(base)
optimizer = torch.optim.Adam(tuned.parameters(), lr=1e-2)
for _ in range(30):
    x = torch.randn(64, 6)
    loss = nn.functional.cross_entropy(tuned(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
test = torch.randn(200, 6)
print(score(base, test), score(tuned, test))
