# A gradient reversal with a strength that has no gradient, and an argument that takes none.
# truth: quiet
import torch
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


torch.manual_seed(27)
encoder, task, domain = nn.Linear(6, 10), nn.Linear(10, 2), nn.Linear(10, 2)
optimizer = torch.optim.Adam([*encoder.parameters(), *task.parameters(), *domain.parameters()], lr=1e-2)
for _ in range(15):
    x, origin = torch.randn(40, 6), torch.randint(0, 2, (40,))
    h = torch.tanh(encoder(x + origin.unsqueeze(1)))
    loss = nn.functional.cross_entropy(task(h), (x[:, 0] > 0).long())
    loss = loss + nn.functional.cross_entropy(domain(Reverse.apply(h, 0.3)), origin)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
