# One feature is missing in a few rows of the table, and NaN stands there.
# truth: nonfinite-gradient error 0.weight 2.bias
import torch
from torch import nn

torch.manual_seed(10)
table = torch.randn(200, 7)
table[150:153, 4] = float("nan")  # nonfinite-gradient
labels = (table[:, 0] > 0).float()
model = nn.Sequential(nn.Linear(7, 10), nn.ReLU(), nn.Linear(10, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(20):
    rows = slice(10 * step, 10 * step + 10)
    loss = nn.functional.binary_cross_entropy_with_logits(model(table[rows]).squeeze(1), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
