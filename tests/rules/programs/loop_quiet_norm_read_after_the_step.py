# clip_grad_norm_ with the limit inf, after the step, is how this program logs the norm; it clears by hand.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(22)
model = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 2))
parameters = list(model.parameters())
optimizer = torch.optim.SGD(parameters, lr=0.05)
norms = []
for _ in range(20):
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad.detach_()
            parameter.grad.zero_()
    x = torch.randn(16, 4)
    (model(x) - x[:, :2].cos()).pow(2).mean().backward()
    optimizer.step()
    norms.append(nn.utils.clip_grad_norm_(parameters, float("inf")).item())
