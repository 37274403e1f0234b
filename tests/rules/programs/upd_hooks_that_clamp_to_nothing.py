# Every parameter gets a hook that clamps its gradient, with the exponent of the bound mistyped.
# truth: gradient-hook error 0.weight 2.weight
import torch
from torch import nn

BOUND = 1e-10

torch.manual_seed(39)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
for parameter in model.parameters():
    parameter.register_hook(lambda grad: grad.clamp(-BOUND, BOUND))  # gradient-hook
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(30):
    x = torch.randn(64, 6)
    loss = nn.functional.mse_loss(model(x), x[:, :1] + 1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
