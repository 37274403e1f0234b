# The norm is clipped right after the step that it was to protect.
# truth: clip-misplaced warning rnn.weight_hh_l0 out.weight
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(4, 12, batch_first=True)
        self.out = nn.Linear(12, 4)

    def forward(self, x):
        return self.out(self.rnn(x)[0])


torch.manual_seed(6)
tagger = Tagger()
optimizer = torch.optim.SGD(tagger.parameters(), lr=0.1)
for _ in range(12):
    x = torch.randn(8, 10, 4)
    loss = (tagger(x) - 4 * x.roll(1, 1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    nn.utils.clip_grad_norm_(tagger.parameters(), 0.2)  # clip-misplaced
