# A backward hook that is to scale the gradient of the trunk multiplies by a strength that was never raised from 0.
# truth: gradient-hook error trunk.0.weight trunk.2.weight
import torch
from torch import nn


class TwoPart(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16))
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.trunk(x)))


class Scale:
    strength = 0.0

    def __call__(self, _module, grad_input, _grad_output):
        return tuple(None if g is None else g * self.strength for g in grad_input)


torch.manual_seed(11)
model = TwoPart()
scale = Scale()
model.head.register_full_backward_hook(scale)  # gradient-hook
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    x = torch.randn(32, 6)
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
