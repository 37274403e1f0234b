# `where` leaves an infinite branch out; its backward gives 0 * Inf, which the ReLU before it takes out again.
# truth: quiet
import torch
from torch import nn


class Reciprocal(nn.Module):
    def forward(self, x):
        positive = torch.relu(x)
        return torch.where(positive > 0, 1.0 / positive, torch.zeros_like(x)).clamp(max=10.0)


torch.manual_seed(3)
model = nn.Sequential(nn.Linear(4, 8), Reciprocal(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for _ in range(8):
    x = torch.randn(16, 4)
    loss = nn.functional.mse_loss(model(x), x.sum(dim=1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
