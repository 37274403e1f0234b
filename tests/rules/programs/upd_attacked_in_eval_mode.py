# Adversarial samples are found in eval mode, the step is made in training mode; statistics of one layer are frozen.
# truth: quiet
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU())
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Linear(16, 3))

    def forward(self, x):
        return self.head(self.stem(x))


def attack(model, x, y, steps=3):
    model.eval()
    delta = torch.zeros_like(x, requires_grad=True)
    for _ in range(steps):
        nn.functional.cross_entropy(model(x + delta), y).backward()
        with torch.no_grad():
            delta += 0.02 * delta.grad.sign()
        delta.grad = None
    model.train()
    model.stem[1].eval()
    return (x + delta).detach()


torch.manual_seed(31)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    x = torch.randn(32, 6)
    y = x[:, :3].argmax(1)
    hard = attack(model, x, y)
    loss = nn.functional.cross_entropy(model(hard), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
attack(model, x, y, steps=20)
