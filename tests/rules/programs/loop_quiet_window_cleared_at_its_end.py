# Accumulation over four batches: step and clear close the window.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(20)
model = nn.Sequential(nn.Linear(6, 16), nn.SiLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for number in range(48):
    x = torch.randn(16, 6)
    loss = (model(x) - x[:, :1]).pow(2).mean()
    (loss / 4).backward()
    if (number + 1) % 4 == 0:
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
