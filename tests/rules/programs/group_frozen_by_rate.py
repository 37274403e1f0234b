# The body keeps its weights because its group has rate 0; the head learns.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(19)
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
groups = [{"params": body.parameters(), "lr": 0.0}, {"params": head.parameters(), "lr": 0.05}]
optimizer = torch.optim.SGD(groups)
for _ in range(20):
    x = torch.randn(32, 4)
    loss = (head(body(x).tanh()) - x[:, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
