# One-hot symbols with a channel of ones beside them, and segment ids that are all 0: constants among what varies.
# truth: quiet
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.read = nn.Linear(9, 24)
        self.segment = nn.Embedding(2, 24)
        self.out = nn.Linear(24, 3)

    def forward(self, symbols, segments):
        return self.out(torch.relu(self.read(symbols) + self.segment(segments)))


torch.manual_seed(0)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(40):
    symbol = torch.randint(0, 8, (64,))
    hot = nn.functional.one_hot(symbol, 8).float()
    inputs = torch.cat((hot, torch.ones(64, 1)), dim=1)
    loss = nn.functional.cross_entropy(model(inputs, torch.zeros(64, dtype=torch.long)), symbol % 3)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
