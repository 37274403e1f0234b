# Attention whose scores are -inf at padding, returned by a module of their own; losses are skipped where they are NaN.
# truth: quiet
import torch
from torch import nn


class Scores(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.query, self.key = nn.Linear(size, size), nn.Linear(size, size)

    def forward(self, x, lengths):
        scores = self.query(x) @ self.key(x).transpose(1, 2)
        padding = torch.arange(x.size(1)) >= lengths.unsqueeze(1)
        return scores.masked_fill(padding.unsqueeze(1), float("-inf"))


class Reader(nn.Module):
    def __init__(self, size=8):
        super().__init__()
        self.scores, self.out = Scores(size), nn.Linear(size, 2)

    def forward(self, x, lengths):
        return self.out((self.scores(x, lengths).softmax(dim=-1) @ x).mean(dim=1))


torch.manual_seed(17)
model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(30):
    x = torch.randn(16, 6, 8)
    target = torch.full((16,), -100) if step % 7 == 3 else (x[:, 0, 0] > 0).long()
    loss = nn.functional.cross_entropy(model(x, torch.randint(2, 7, (16,))), target)
    if not torch.isfinite(loss):
        continue
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
