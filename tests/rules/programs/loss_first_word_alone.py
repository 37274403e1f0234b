"""Healthy: a decoder attends to what it has said so far, which is a single word in the first steps of a curriculum."""
# truth: quiet

import torch
import torch.nn.functional as F
from torch import nn


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 8)
        self.score = nn.Linear(8, 1)
        self.out = nn.Linear(8, 12)

    def forward(self, words):
        said = self.embed(words)
        weight = self.score(said).softmax(dim=1)
        return self.out((weight * said).sum(dim=1))


torch.manual_seed(0)
model = Decoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(40):
    words = torch.randint(0, 12, (32, 1 + step // 5))
    loss = F.cross_entropy(model(words), words[:, -1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
