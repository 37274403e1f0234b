# A hand-written backward divides by the norm that it saved, which is 0 for a sample of zeros.
# truth: nonfinite-gradient error weight
import torch
from torch import nn


class Unit(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        norm = x.norm(dim=1, keepdim=True)
        ctx.save_for_backward(x, norm)
        return x / norm.clamp(min=1e-6)

    @staticmethod
    def backward(ctx, gradient):
        x, norm = ctx.saved_tensors
        unit = x / norm  # nonfinite-gradient
        return (gradient - unit * (gradient * unit).sum(dim=1, keepdim=True)) / norm.clamp(min=1e-6)


torch.manual_seed(9)
model = nn.Linear(5, 4, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(14):
    x = torch.randn(8, 5)
    if step == 6:
        x[2] = 0.0
    loss = (Unit.apply(model(x)) - x[:, :4]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
