# A helper takes the loss back, clears and steps, in this order: Adam never sees a gradient.
# truth: zero-grad-misplaced error 0.weight 2.weight
import torch
from torch import nn


def update(optimizer, loss):
    loss.backward()
    optimizer.zero_grad()  # zero-grad-misplaced
    optimizer.step()


torch.manual_seed(1)
body = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
adam = torch.optim.AdamW(body.parameters(), lr=1e-3)
for _ in range(15):
    x = torch.randn(32, 6)
    update(adam, nn.functional.mse_loss(body(x), x[:, :2].sin()))
