# Pre-training at a usual rate, then a second optimizer at a thousandth of it, with a short warm-up and a cosine to 0.
# truth: quiet
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR


def train(model, optimizer, steps, shift=0.0, scheduler=None):
    for _ in range(steps):
        x = torch.randn(64, 6) + shift
        loss = nn.functional.mse_loss(model(x), x[:, :1].sin())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()


torch.manual_seed(29)
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
train(model, torch.optim.Adam(model.parameters(), lr=1e-2), 40)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
ramp, fall = LinearLR(optimizer, 0.1, total_iters=5), CosineAnnealingLR(optimizer, 25)
train(model, optimizer, 30, 0.1, SequentialLR(optimizer, [ramp, fall], [5]))
