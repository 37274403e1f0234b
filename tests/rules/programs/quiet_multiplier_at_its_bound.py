# A constraint that holds already: its multiplier starts at zero, wants to fall below, and is put back each time.
# truth: quiet
import torch
from torch import nn


def clamped(multiplier):
    multiplier.clamp_(min=0)


def assigned(multiplier):
    multiplier.data = torch.clamp(multiplier.data, min=0)


def train(project):
    model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
    multiplier = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    ascent = torch.optim.SGD([multiplier], lr=0.5, maximize=True)
    for _ in range(20):
        x = torch.randn(128, 5)
        score = model(x)
        excess = score.sigmoid().mean() - 0.9
        loss = nn.functional.binary_cross_entropy_with_logits(score, (x[:, :1] > 0).float())
        optimizer.zero_grad()
        ascent.zero_grad()
        (loss + multiplier * excess).sum().backward()
        optimizer.step()
        ascent.step()
        with torch.no_grad():
            project(multiplier)


torch.manual_seed(0)
for projection in (clamped, assigned):
    train(projection)
