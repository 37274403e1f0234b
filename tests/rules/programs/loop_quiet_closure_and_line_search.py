# L-BFGS calls its closure, which clears and computes anew, as often as it likes.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(30)
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=6, line_search_fn="strong_wolfe")
x = torch.randn(64, 3)
y = x.sin().sum(1, keepdim=True)


def closure():
    optimizer.zero_grad()
    loss = (model(x) - y).pow(2).mean()
    loss.backward()
    return loss


for _ in range(10):
    optimizer.step(closure)
