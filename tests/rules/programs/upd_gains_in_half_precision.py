# All weights are cast to float16 by hand; the gains, at 1.0, are too large for updates of 1e-4.
# truth: update-rounded-away error norm.weight
import torch
from torch import nn


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(12, 16)
        self.norm = nn.LayerNorm(16)
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.norm(self.body(x)))).squeeze(1)


torch.manual_seed(15)
model = Scorer()
for p in model.parameters():
    p.data = p.data.half()
optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-5, eps=1e-4)  # update-rounded-away
for _ in range(40):
    x = torch.randn(32, 12).half()
    loss = (model(x).float() - x[:, 0].float()).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
