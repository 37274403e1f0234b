# Clipping stands beside zero_grad, in front of backward: it meets no gradient.
# truth: clip-misplaced warning weight
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(7)
model = nn.Linear(4, 2)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
for _ in range(12):
    x = torch.randn(16, 4)
    loss = nn.functional.smooth_l1_loss(model(x), x[:, :2])
    optimizer.zero_grad()
    clip_grad_norm_(model.parameters(), max_norm=1.0)  # clip-misplaced
    loss.backward()
    optimizer.step()
