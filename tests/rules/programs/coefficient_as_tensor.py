# A simulator learns its drag, but the drag is a plain tensor that requires grad.
# truth: unregistered-parameter error drag
import torch
from torch import nn


class Falling(nn.Module):
    def __init__(self):
        super().__init__()
        self.correction = nn.Linear(1, 1)
        self.drag = torch.full((1,), 0.5, requires_grad=True)  # unregistered-parameter

    def forward(self, speed):
        return 9.8 - self.drag * speed + 0.1 * self.correction(speed)


torch.manual_seed(4)
model = Falling()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(20):
    speed = torch.rand(16, 1) * 5
    loss = (model(speed) - (9.8 - 0.2 * speed)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
