# Pressure in pascals and humidity as a fraction in one squared error, by hand, from a loader.
# truth: unscaled-data warning heads.weight heads.bias
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Station(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 32), nn.GELU())
        self.heads = nn.Linear(32, 2)

    def forward(self, x):
        return self.heads(self.body(x))


def weather(count):
    state = torch.randn(count, 6)
    pressure = 101_325.0 + 900.0 * state[:, 0]
    humidity = torch.sigmoid(state[:, 1])
    targets = torch.stack((pressure, humidity), dim=1)  # unscaled-data
    return TensorDataset(state, targets)


torch.manual_seed(0)
model = Station()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(3):
    for state, target in DataLoader(weather(128), batch_size=32):
        loss = (model(state) - target).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
