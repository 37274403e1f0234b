# Norms, spreads and distances at 0, where torch takes the slope 0, and singular values that are equal.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(17)
model = nn.Linear(6, 6)
nn.init.eye_(model.weight)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for _ in range(40):
    x = torch.randn(10, 6)
    x[3] = 0.0
    y = model(x) - model.bias
    loss = y.norm(dim=1).mean() + torch.cdist(y, y).mean() + y[3].std() + torch.linalg.svdvals(model.weight).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
