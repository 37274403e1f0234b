# The training function builds model and optimizer, and is called once for each batch.
# truth: recreated-each-forward error 0.weight 2.weight
import torch
from torch import nn


def train(x, y):
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))  # recreated-each-forward
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


torch.manual_seed(9)
for _ in range(16):
    x = torch.randn(32, 4)
    train(x, x.sum(1, keepdim=True))
