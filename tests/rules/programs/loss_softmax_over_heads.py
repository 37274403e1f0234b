"""Attention whose scores are normalised over the heads."""
# truth: softmax-dim warning split.weight

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.split = nn.Linear(6, 24)
        self.out = nn.Linear(8, 3)

    def forward(self, tokens):
        b, length, _ = tokens.shape
        q, k, v = self.split(tokens).view(b, length, 3, 2, 4).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / 2.0
        weights = F.dropout(torch.softmax(scores, dim=1), 0.1)  # softmax-dim
        return self.out((weights @ v).transpose(1, 2).reshape(b, length, 8).mean(dim=1))


torch.manual_seed(0)
model = Attention()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(20):
    tokens = torch.randn(16, 5, 6)
    loss = F.cross_entropy(model(tokens), tokens[:, 0, :3].argmax(dim=1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
