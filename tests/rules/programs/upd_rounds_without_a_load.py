# Hospitals train models that start from the server's state; the mean of their weights goes into a dict, and no further.
# truth: trained-copy-discarded error server.0.weight server.2.weight
import torch
from torch import nn


def build():
    return nn.Sequential(nn.Linear(7, 10), nn.ReLU(), nn.Linear(10, 1))


def local_round(server, x, y):
    local = build()
    local.load_state_dict(server.state_dict())  # trained-copy-discarded
    optimizer = torch.optim.SGD(local.parameters(), lr=0.05)
    for _ in range(4):
        loss = nn.functional.mse_loss(local(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {name: value.clone() for name, value in local.state_dict().items()}


torch.manual_seed(7)
server = build()
sites = [(x, x[:, :1] - 0.5) for x in (torch.randn(40, 7) for _ in range(3))]
for _ in range(4):
    states = [local_round(server, x, y) for x, y in sites]
    mean = {name: torch.stack([s[name] for s in states]).mean(0) for name in states[0]}
    with torch.no_grad():
        print(sum(nn.functional.mse_loss(server(x), y).item() for x, y in sites), len(mean))
