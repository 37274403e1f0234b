# torch.tensor of a list of leaves, held by variables only.
# truth: detached error a b
import torch

torch.manual_seed(0)
a, b = torch.tensor(0.5, requires_grad=True), torch.tensor(0.1, requires_grad=True)
opt = torch.optim.Adam([a, b], 0.1)
x = torch.linspace(0, 1, 20)
y = 2 * x + 1
for _ in range(6):
    coef = torch.tensor([a, b], requires_grad=True)  # detached
    loss = (coef[0] * x + coef[1] - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
