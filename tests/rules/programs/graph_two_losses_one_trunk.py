# Two heads on one trunk, and a backward for the loss of each.
# truth: graph-freed error
import torch
from torch import nn

torch.manual_seed(15)
trunk, age, sex = nn.Linear(6, 10), nn.Linear(10, 1), nn.Linear(10, 2)
optimizer = torch.optim.SGD([*trunk.parameters(), *age.parameters(), *sex.parameters()], lr=0.1)
for _ in range(10):
    x = torch.randn(16, 6)
    shared = trunk(x).tanh()
    age_loss = (age(shared) - x[:, :1]).pow(2).mean()
    sex_loss = nn.functional.cross_entropy(sex(shared), (x[:, 1] > 0).long())
    optimizer.zero_grad()
    age_loss.backward()
    sex_loss.backward()  # graph-freed
    optimizer.step()
