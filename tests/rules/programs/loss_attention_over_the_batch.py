"""Pooling by attention whose weights add up over the samples of the batch."""
# truth: softmax-dim warning score.weight

import torch
import torch.nn.functional as F
from torch import nn


class Pooler(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(8, 1)
        self.out = nn.Linear(8, 3)

    def forward(self, frames):
        weights = F.softmax(self.score(frames).squeeze(-1), dim=0)  # softmax-dim
        return self.out((weights.unsqueeze(-1) * frames).sum(dim=1))


torch.manual_seed(0)
model = Pooler()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(25):
    frames = torch.randn(20, 7, 8)
    loss = F.cross_entropy(model(frames), frames[:, 0, :3].argmax(dim=1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
