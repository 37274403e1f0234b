# The optimizer only clears gradients; a rule of its own moves the weights through `.data`, which torch does not count.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(13)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    x = torch.randn(32, 4)
    loss = (model(x) - x[:, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    for parameter in model.parameters():
        parameter.data -= 0.1 * parameter.grad
