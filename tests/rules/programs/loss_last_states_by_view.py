"""The last states of both directions are viewed, not transposed, to one row for each sample."""
# truth: scrambled-reshape warning out.weight

import torch
import torch.nn.functional as F
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(40, 10)
        self.lstm = nn.LSTM(10, 14, batch_first=True, bidirectional=True)
        self.out = nn.Linear(28, 4)

    def forward(self, text):
        _, (last, _) = self.lstm(self.embed(text))
        return self.out(last.view(text.shape[0], -1))  # scrambled-reshape


torch.manual_seed(0)
model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(20):
    text = torch.randint(0, 40, (24, 8))
    loss = F.cross_entropy(model(text), text[:, -1] % 4)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
