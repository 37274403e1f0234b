"""Two classes, one output, and a softmax over it."""
# truth: single-logit-softmax error layers.0.weight layers.2.weight

import torch
from torch import nn


class Churn(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(5, 12),
            nn.ReLU(),
            nn.Linear(12, 1),
            nn.Softmax(dim=-1),  # single-logit-softmax
        )

    def forward(self, x):
        return self.layers(x)


torch.manual_seed(0)
model = Churn()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
criterion = nn.BCELoss()
for _ in range(20):
    x = torch.randn(32, 5)
    loss = criterion(model(x).squeeze(1), (x[:, 0] > 0).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
