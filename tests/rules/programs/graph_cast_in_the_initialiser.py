# A helper makes a weight as a leaf and returns its cast.
# truth: nonleaf-parameter error w
import torch

torch.manual_seed(0)


def init(shape):
    return torch.randn(shape, requires_grad=True, dtype=torch.float64).float()  # nonleaf-parameter


w = init((4, 1))
b = torch.zeros(1, requires_grad=True)
for _i in range(4):
    loss = (torch.randn(8, 4) @ w + b - 1).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        for p in (w, b):
            if p.grad is not None:
                p.sub_(0.1 * p.grad)
                p.grad = None
