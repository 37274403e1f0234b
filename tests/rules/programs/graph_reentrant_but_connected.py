# Reentrant checkpointing behind a layer that learns: its input requires grad.
# truth: quiet
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(28)
stem, block, head = nn.Linear(6, 10), nn.Sequential(nn.Linear(10, 10), nn.Tanh()), nn.Linear(10, 1)
optimizer = torch.optim.SGD([*stem.parameters(), *block.parameters(), *head.parameters()], lr=0.1)
for _ in range(12):
    x = torch.randn(32, 6)
    h = checkpoint(block, stem(x), use_reentrant=True)
    loss = (head(h) - x[:, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
