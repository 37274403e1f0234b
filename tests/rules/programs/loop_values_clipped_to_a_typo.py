# Elements are clipped to 1e-6 where 1e-1 was meant; plain gradient descent hardly moves.
# truth: clipped-away error 0.weight 2.weight
import torch
from torch import nn

torch.manual_seed(8)
model = nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    x = torch.randn(32, 6)
    optimizer.zero_grad()
    loss = (model(x) - x.prod(1, keepdim=True) - 2).pow(2).mean()
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 1e-6)  # clipped-away
    optimizer.step()
