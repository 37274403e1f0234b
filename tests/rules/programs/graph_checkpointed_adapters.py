# Adapters between the frozen layers of an encoder, each block under a reentrant checkpoint.
# truth: reentrant-checkpoint error blocks.0.adapter.weight blocks.1.adapter.bias
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen = nn.Linear(8, 8).requires_grad_(False)
        self.adapter = nn.Linear(8, 8)

    def forward(self, x):
        return x + self.adapter(torch.tanh(self.frozen(x)))


class Tuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 8).requires_grad_(False)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(8, 2)

    def forward(self, ids):
        h = self.words(ids)
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=True)  # reentrant-checkpoint
        return self.head(h.mean(1))


torch.manual_seed(12)
model = Tuned()
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
for _ in range(10):
    ids = torch.randint(0, 20, (16, 5))
    loss = nn.functional.cross_entropy(model(ids), (ids[:, 0] > 9).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
