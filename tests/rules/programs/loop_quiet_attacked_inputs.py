# One backward pass finds the attack on the input and fills the weights' gradients by the way; they are cleared.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(26)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _ in range(25):
    x = torch.randn(32, 6)
    y = x[:, :3].argmax(1)
    x.requires_grad_()
    nn.functional.cross_entropy(model(x), y).backward()
    attacked = (x + 0.1 * x.grad.sign()).detach()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(attacked), y).backward()
    optimizer.step()
