# A learned log-variance starts above the range it is clamped to: the clamp has no slope there.
# truth: zero-gradient error log_var
import torch
from torch import nn


class Gaussian(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Linear(5, 1)
        self.log_var = nn.Parameter(torch.full((1,), 12.0))

    def forward(self, x):
        return self.mean(x).squeeze(1), self.log_var.clamp(-8.0, 8.0)  # zero-gradient


torch.manual_seed(6)
model = Gaussian()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(25):
    x = torch.randn(64, 5)
    mean, log_var = model(x)
    loss = (0.5 * log_var + 0.5 * (x.sum(1) - mean).pow(2) / log_var.exp()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
