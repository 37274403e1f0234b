# A policy starts as a copy of a reference that stays as it is and is asked at each step.
# truth: quiet
import copy

import torch
from torch import nn

torch.manual_seed(27)
reference = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4))
policy = copy.deepcopy(reference)
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for _ in range(30):
    x = torch.randn(32, 6)
    good, bad = x[:, :4].argmax(1), x[:, :4].argmin(1)
    with torch.no_grad():
        kept = reference(x).log_softmax(1)
    gain = policy(x).log_softmax(1) - kept
    better = gain.gather(1, good[:, None]) - gain.gather(1, bad[:, None])
    loss = -nn.functional.logsigmoid(better).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
