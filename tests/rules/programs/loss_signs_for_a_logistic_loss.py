"""Labels 1 and -1 from an older code go into a loss that takes 1 and 0."""
# truth: target-mismatch error 0.weight

import torch
from torch import nn

torch.manual_seed(0)
svm = nn.Sequential(nn.Linear(7, 9), nn.ELU(), nn.Linear(9, 1))
optimizer = torch.optim.SGD(svm.parameters(), lr=0.02, momentum=0.9)
criterion = nn.BCEWithLogitsLoss()


def batches(count):
    for _ in range(count):
        x = torch.randn(50, 7)
        yield x, torch.sign(x[:, :1] + 0.1)


for x, sign in batches(25):
    optimizer.zero_grad()
    loss = criterion(svm(x), sign)  # target-mismatch
    loss.backward()
    optimizer.step()
