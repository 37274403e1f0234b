# The angle between two equal directions: acos at 1 has an infinite slope.
# truth: nonfinite-gradient error weight
import torch
from torch import nn


def angle(a, b):
    cosine = nn.functional.cosine_similarity(a, b, dim=-1).clamp(-1.0, 1.0)
    return torch.acos(cosine)  # nonfinite-gradient


torch.manual_seed(11)
rotation = nn.Linear(2, 2, bias=False)
nn.init.eye_(rotation.weight)
optimizer = torch.optim.SGD(rotation.parameters(), lr=0.1)
for _ in range(10):
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]])
    target = torch.tensor([[1.0, 0.0], [-1.0, 1.0], [3.0, 3.0]])
    loss = angle(rotation(x), target).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
