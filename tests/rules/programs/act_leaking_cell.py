# A cell written by hand forgets half of its state at every step, and the label depends on the first reading.
# truth: vanishing-gradient warning cell.step.weight
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.step = nn.Linear(1 + width, width)

    def forward(self, reading, state):
        return 0.5 * torch.tanh(self.step(torch.cat((reading, state), dim=1)))  # vanishing-gradient


class Memory(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.width = width
        self.cell = Cell(width)
        self.out = nn.Linear(width, 2)

    def forward(self, series):
        state = series.new_zeros(len(series), self.width)
        for reading in series.unbind(dim=1):
            state = self.cell(reading.unsqueeze(1), state)
        return self.out(state)


torch.manual_seed(0)
model = Memory()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(30):
    series = torch.randn(32, 24)
    loss = nn.functional.cross_entropy(model(series), (series[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
