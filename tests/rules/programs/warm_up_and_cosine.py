# The rate begins at exactly 0, rises for a tenth of the run, and ends at exactly 0.
# truth: quiet
import math

import torch
from torch import nn

torch.manual_seed(15)
TOTAL, WARM_UP = 50, 5


def factor(step):
    if step < WARM_UP:
        return step / WARM_UP
    return 0.5 * (1 + math.cos(math.pi * (step - WARM_UP) / (TOTAL - 1 - WARM_UP)))


model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
for _ in range(TOTAL):
    x = torch.randn(32, 4)
    loss = (model(x) - x[:, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
