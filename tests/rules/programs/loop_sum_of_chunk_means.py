# A generator of chunks feeds the loop that accumulates; nobody divides by their number, and the run diverges.
# truth: accumulation-scaling error 0.weight 2.weight
import torch
from torch import nn

torch.manual_seed(16)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.15)


def chunks(x, size):
    for begin in range(0, len(x), size):
        yield x[begin : begin + size]


for _ in range(16):
    for chunk in chunks(torch.randn(64, 8), 4):
        loss = nn.functional.mse_loss(model(chunk), 3 * chunk.sum(1, keepdim=True))
        loss.backward()  # accumulation-scaling
    optimizer.step()
    optimizer.zero_grad()
