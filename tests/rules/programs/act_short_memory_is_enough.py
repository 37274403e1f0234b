# A recurrent net whose answer depends on the last symbols: the first ones get no gradient, and none is missed.
# truth: quiet
import torch
from torch import nn


class Last(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 8)
        self.rnn = nn.RNN(8, 24, batch_first=True)
        self.head = nn.Linear(24, 5)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0][:, -1])


torch.manual_seed(0)
model = Last()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(40):
    tokens = torch.randint(0, 5, (48, 30))
    loss = nn.functional.cross_entropy(model(tokens), tokens[:, -1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
