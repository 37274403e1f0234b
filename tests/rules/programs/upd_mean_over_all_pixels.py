# Under autocast in float16 without a scaler: a mean over all pixels leaves gradients that float16 cannot hold.
# truth: fp16-underflow error 0.weight
import torch
from torch import nn

torch.manual_seed(17)
net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 3, padding=1))
optimizer = torch.optim.SGD(net.parameters(), lr=1.0)
for _ in range(10):
    images = torch.rand(8, 1, 48, 48)
    with torch.autocast("cpu", dtype=torch.float16):
        output = net(images)
    loss = 1e-3 * (output.float() - images).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()  # fp16-underflow
    optimizer.step()
