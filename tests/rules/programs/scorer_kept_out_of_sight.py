# A finished network scores outputs; it lies in a list on purpose, so that the optimizer does not find it.
# truth: quiet
import torch
from torch import nn


class Restorer(nn.Module):
    def __init__(self, scorer):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 6))
        self.hidden = [scorer.eval()]

    def loss(self, noisy, clean):
        scorer = self.hidden[0]
        return (scorer(self.net(noisy)) - scorer(clean)).pow(2).mean()

    def forward(self, noisy):
        return self.net(noisy)


torch.manual_seed(12)
model = Restorer(nn.Sequential(nn.Linear(6, 6), nn.Tanh()))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(20):
    clean = torch.randn(16, 6)
    loss = model.loss(clean + 0.2 * torch.randn_like(clean), clean)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
