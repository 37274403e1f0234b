# The first scaled gradients overflow, the scaler skips those steps and goes on with a lower scale.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(16)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**19, growth_interval=1000)
for _ in range(80):
    x = torch.randn(32, 8)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.mse_loss(model(x), x[:, :1] + x[:, 1:2])
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
