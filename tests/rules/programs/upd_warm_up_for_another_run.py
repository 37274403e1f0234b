# The warm-up was sized for a million samples; the run is over while the rate is still near its first thousandth.
# truth: update-too-small warning 0.weight 2.weight
import torch
from torch import nn
from torch.optim.lr_scheduler import LinearLR


def spirals(n):
    angle = torch.rand(n) * 6
    label = torch.randint(0, 2, (n,))
    turned = angle + 3.14 * label
    return torch.stack([angle * turned.cos(), angle * turned.sin()], 1), label


torch.manual_seed(12)
model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
warm_up = LinearLR(optimizer, start_factor=1e-4, total_iters=20_000)  # update-too-small
for _ in range(60):
    x, y = spirals(64)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    warm_up.step()
