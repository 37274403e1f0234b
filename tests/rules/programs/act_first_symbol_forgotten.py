# A plain recurrent net is asked for the first symbol of forty: no gradient comes that far back.
# truth: vanishing-gradient warning rnn.weight_hh_l0 rnn.weight_ih_l0
import torch
from torch import nn


class Recall(nn.Module):
    def __init__(self, symbols=6, width=24):
        super().__init__()
        self.embed = nn.Embedding(symbols, 12)
        self.rnn = nn.RNN(12, width, batch_first=True)
        self.head = nn.Linear(width, symbols)

    def forward(self, tokens):
        states, _ = self.rnn(self.embed(tokens))  # vanishing-gradient
        return self.head(states[:, -1])


torch.manual_seed(0)
model = Recall()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(40):
    tokens = torch.randint(0, 6, (48, 40))
    loss = nn.functional.cross_entropy(model(tokens), tokens[:, 0])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
