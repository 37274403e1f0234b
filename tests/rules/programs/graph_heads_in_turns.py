# Two heads learn in turns; the one that rests is evaluated on detached features for the log.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(26)
body, heads = nn.Linear(6, 10), nn.ModuleList([nn.Linear(10, 1), nn.Linear(10, 1)])
model = nn.ModuleDict({"body": body, "heads": heads})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    x = torch.randn(32, 6)
    hidden = torch.tanh(body(x))
    now, rests = heads[step % 2], heads[1 - step % 2]
    loss = (now(hidden) - x[:, :1]).pow(2).mean()
    watched = (rests(hidden.detach()) - x[:, 1:2]).pow(2).mean().item()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
