# An optimizer of the program's own tries random steps and keeps the good ones: there is nothing to differentiate.
# truth: quiet
import torch
from torch import nn


class Climb(torch.optim.Optimizer):
    def __init__(self, params, size):
        super().__init__(params, {"size": size})

    @torch.no_grad()
    def step(self, closure):
        before = closure()
        for group in self.param_groups:
            moves = [group["size"] * torch.randn_like(p) for p in group["params"]]
            for p, move in zip(group["params"], moves, strict=True):
                p.add_(move)
            if closure() > before:
                for p, move in zip(group["params"], moves, strict=True):
                    p.sub_(move)
        return before


torch.manual_seed(17)
model = nn.Linear(3, 1)
optimizer = Climb(model.parameters(), size=0.1)
x = torch.randn(32, 3)
for _ in range(30):
    optimizer.step(lambda: (model(x) - x.sum(1, keepdim=True)).pow(2).mean())
