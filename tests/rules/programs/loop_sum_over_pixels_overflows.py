# The loss is a sum over pixels in half precision: every scaled gradient overflows.
# truth: scaler-skips-steps error 0.weight 2.weight
import torch
from torch import nn

torch.manual_seed(11)
model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 3, padding=1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20)
for _ in range(10):
    image = torch.rand(8, 1, 12, 12)
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(image)
    loss = (out.float() - 255 * image).pow(2).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)  # scaler-skips-steps
    scaler.update()
