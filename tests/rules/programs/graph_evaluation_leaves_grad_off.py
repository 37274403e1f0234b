# An evaluation switches grad mode off for good, after the traced steps.
# truth: no-grad-region error 0.weight
import torch
from torch import nn

torch.manual_seed(0)


def evaluate(model, x, y):
    model.eval()
    torch.set_grad_enabled(False)  # no-grad-region
    acc = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return acc


model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
opt = torch.optim.Adam(model.parameters())
for _epoch in range(3):
    for _ in range(5):
        x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    evaluate(model, x, y)
