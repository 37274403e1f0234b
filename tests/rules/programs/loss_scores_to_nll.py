"""Raw scores of a tagger go into NLLLoss."""
# truth: probabilities-to-nll warning tag.weight

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 12)
        self.gru = nn.GRU(12, 12, batch_first=True)
        self.tag = nn.Linear(12, 5)

    def forward(self, words):
        states, _ = self.gru(self.embed(words))
        return self.tag(states)


torch.manual_seed(0)
model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = nn.NLLLoss()
for _ in range(20):
    words = torch.randint(0, 30, (16, 6))
    loss = criterion(model(words).transpose(1, 2), words % 5)  # probabilities-to-nll
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
