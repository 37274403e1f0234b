# A prior on sparsity goes too far: the hidden bias starts at -30, so the layer never fires.
# truth: dead-relu error hidden.0.weight hidden.0.bias
import torch
from torch import nn


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(10, 20), nn.ReLU())
        self.score = nn.Linear(20, 1)
        nn.init.constant_(self.hidden[0].bias, -30.0)  # dead-relu

    def forward(self, x):
        return self.score(self.hidden(x)).squeeze(-1)


torch.manual_seed(2)
ranker = Ranker()
optimizer = torch.optim.Adam(ranker.parameters(), lr=1e-3)
for _ in range(30):
    better, worse = torch.randn(32, 10) + 0.3, torch.randn(32, 10)
    loss = nn.functional.softplus(ranker(worse) - ranker(better) + better.mean() * 0).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
