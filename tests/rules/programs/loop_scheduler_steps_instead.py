# The scheduler is stepped after every batch, the optimizer is not.
# truth: no-step error weight
import torch
from torch import nn

torch.manual_seed(17)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
for _ in range(12):
    x = torch.randn(16, 4)
    loss = (model(x) - x[:, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    scheduler.step()  # no-step
