# Raw readings in hundreds enter a tanh network: its first layer saturates, and the loss stays where it was.
# truth: unscaled-data warning encode.weight
import torch
from torch import nn


class Gauge(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(12, 24)
        self.mix = nn.Linear(24, 24)
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.mix(torch.tanh(self.encode(x)))))


torch.manual_seed(0)
readings = 400.0 + 60.0 * torch.randn(512, 12)  # unscaled-data
target = torch.sin(readings[:, 0] / 20.0) * torch.cos(readings[:, 1] / 20.0)
model = Gauge()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for index in torch.randint(0, 512, (60, 32)):
    loss = nn.functional.mse_loss(model(readings[index]).squeeze(1), target[index])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
