# A function finishes the step: it clips first and lets the scaler divide afterwards.
# truth: clip-misplaced error 0.weight 2.bias
import torch
from torch import nn

torch.manual_seed(10)
model = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
scaler = torch.amp.GradScaler("cpu")
parameters = list(model.parameters())


def finish():
    nn.utils.clip_grad_norm_(parameters, 0.5)  # clip-misplaced
    scaler.step(optimizer)
    scaler.update()


for _ in range(12):
    x = torch.randn(16, 5)
    optimizer.zero_grad()
    scaler.scale((model(x) - x[:, :1]).pow(2).mean()).backward()
    finish()
