# A gate compares words with a padding id that no sentence uses the way it is meant: the mask is 0 everywhere.
# truth: zero-gradient error context.weight_ih_l0 context.weight_hh_l0
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 12)
        self.context = nn.GRU(12, 12, batch_first=True)
        self.tag = nn.Linear(12, 4)

    def forward(self, words):
        e = self.embed(words)
        states, _ = self.context(e)
        keep = (words < 0).float().unsqueeze(-1)  # zero-gradient
        return self.tag(e + states * keep)


torch.manual_seed(3)
tagger = Tagger()
optimizer = torch.optim.Adam(tagger.parameters(), lr=1e-2)
for _ in range(20):
    words = torch.randint(0, 30, (16, 7))
    loss = nn.functional.cross_entropy(tagger(words).flatten(0, 1), (words % 4).flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
