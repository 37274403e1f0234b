# Every few steps gradients are squared and summed as Fisher information: computed, read, cleared, never stepped on.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(28)
model = nn.Linear(5, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
fisher = [torch.zeros_like(p) for p in model.parameters()]


def collect(x):
    for each in x:
        model.zero_grad()
        model(each).log_softmax(0)[0].neg().backward()
        for total, parameter in zip(fisher, model.parameters(), strict=True):
            total.add_(parameter.grad.detach().square())


for number in range(20):
    x = torch.randn(16, 5)
    if number % 4 == 0:
        collect(x)
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    loss = loss + 1e-4 * sum((f * p.square()).sum() for f, p in zip(fisher, model.parameters(), strict=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
