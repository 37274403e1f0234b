# Zero where it is meant: a gate, a low-rank factor, the last layer of a branch, a tied head, position embeddings.
# truth: quiet
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)
        self.down = nn.Parameter(0.1 * torch.randn(width, 2))
        self.up = nn.Parameter(torch.zeros(2, width))
        self.gate = nn.Parameter(torch.zeros(width))
        nn.init.zeros_(self.narrow.weight)
        nn.init.zeros_(self.narrow.bias)

    def forward(self, x):
        h = self.norm(x)
        return x + self.narrow(torch.relu(self.wide(h))) + h @ self.down @ self.up + self.gate * h.roll(1, dims=1)


class Words(nn.Module):
    def __init__(self, words=12, width=16, length=6):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.place = nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.Sequential(Block(width), Block(width))
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(self.blocks(self.embed(tokens) + self.place))


torch.manual_seed(0)
model = Words()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(40):
    tokens = torch.randint(0, 12, (32, 6))
    loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), ((tokens + torch.arange(6)) % 12).flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
