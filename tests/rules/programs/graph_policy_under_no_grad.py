# The policy's value is computed under no_grad, and the target network gets the gradient in its place.
# truth: no-grad-region error policy.0.weight
import copy

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
target = copy.deepcopy(policy)
opt = torch.optim.Adam(policy.parameters(), lr=1e-3)


class Buffer(list):
    pass


for _step in range(8):
    s, a, r, s2 = torch.randn(8, 3), torch.randint(0, 2, (8, 1)), torch.randn(8), torch.randn(8, 3)
    with torch.no_grad():  # no-grad-region
        q = policy(s).gather(1, a).squeeze(1)
    y = r + 0.9 * target(s2).max(1)[0]
    loss = nn.functional.smooth_l1_loss(q, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
