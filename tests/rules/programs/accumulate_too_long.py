# Gradients are accumulated over more batches than an epoch has, and the counter starts anew with each epoch.
# truth: no-step error 0.weight 0.bias 2.weight 2.bias
import torch
from torch import nn

ACCUMULATE = 16


def train(model, optimizer, batches):
    optimizer.zero_grad()
    for number, (x, y) in enumerate(batches, 1):
        loss = nn.functional.mse_loss(model(x), y) / ACCUMULATE
        loss.backward()
        if number % ACCUMULATE == 0:
            optimizer.step()  # no-step
            optimizer.zero_grad()


torch.manual_seed(5)
model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(4):
    inputs = torch.randn(10, 8, 3)
    train(model, optimizer, [(x, x.sum(1, keepdim=True)) for x in inputs])
