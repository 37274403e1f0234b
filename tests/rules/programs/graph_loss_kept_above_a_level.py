# The loss is kept above a level, and centred by an average of earlier losses, which are plain numbers.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(39)
net = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
average = 0.0
for _ in range(20):
    x = torch.randn(32, 5)
    loss = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1))
    kept = (loss - 0.2).abs() + 0.2
    centred = kept - average
    optimizer.zero_grad()
    centred.backward()
    optimizer.step()
    average = 0.9 * average + 0.1 * loss.item()
