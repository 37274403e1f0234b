# The loss is computed inside the block that was meant for the metrics: backward raises.
# truth: no-grad-region error 0.weight 2.bias
import torch
from torch import nn

torch.manual_seed(5)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(10):
    x = torch.randn(20, 4)
    target = (x[:, 0] > 0).long()
    with torch.no_grad():  # no-grad-region
        logits = net(x)
        hits = (logits.argmax(1) == target).float().mean()
        loss = nn.functional.cross_entropy(logits, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
