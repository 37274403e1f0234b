# The gradients are cleared at the top of each epoch, not of each batch.
# truth: missing-zero-grad error weight bias
import torch
from torch import nn

torch.manual_seed(4)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.randn(8, 16, 3)


def epoch():
    optimizer.zero_grad()
    for x in data:
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        loss.backward()  # missing-zero-grad
        optimizer.step()


for _ in range(4):
    epoch()
