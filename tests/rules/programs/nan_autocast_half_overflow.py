# A sum of squares in float16 passes 65504: the loss is Inf, though its gradient is not.
# truth: nonfinite-gradient warning
import torch
from torch import nn


def energy(features):
    return (features * features).half().sum(dim=1)  # nonfinite-gradient


torch.manual_seed(8)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
for step in range(16):
    x = torch.randn(12, 8) * (200.0 if step == 10 else 1.0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        features = model(x)
    loss = energy(features.float()).float().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
