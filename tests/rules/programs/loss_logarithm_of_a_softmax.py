"""Healthy: the logarithm of a softmax goes into NLLLoss, and its entropy is a further term."""
# truth: quiet

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 4), nn.Softmax(dim=1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(40):
    x = torch.randn(64, 6)
    probabilities = model(x)
    entropy = -(probabilities * probabilities.clamp_min(1e-8).log()).sum(dim=1).mean()
    loss = F.nll_loss(torch.log(probabilities + 1e-8), x[:, :4].argmax(dim=1)) - 0.01 * entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
