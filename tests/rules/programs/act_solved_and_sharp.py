# A task that is solved: sigmoid outputs at 0 and 1, attention that picks one entry, and a loss that rests at its floor.
# truth: quiet
import torch
from torch import nn


class Pick(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.choose = nn.Softmax(dim=-1)
        self.judge = nn.Sequential(nn.Linear(width, 16), nn.Tanh(), nn.Linear(16, 1), nn.Sigmoid())

    def forward(self, question, entries):
        weights = self.choose((entries @ self.query(question).unsqueeze(-1)).squeeze(-1))
        return self.judge((weights.unsqueeze(-1) * entries).sum(dim=1)).squeeze(1)


torch.manual_seed(0)
model = Pick()
nn.init.eye_(model.query.weight)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
for _ in range(150):
    entries = 3.0 * torch.randn(64, 4, 8).sign()
    chosen = entries[torch.arange(64), torch.randint(0, 4, (64,))]
    loss = nn.functional.binary_cross_entropy(model(chosen, entries), (chosen[:, 0] > 0).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
