# An adversarial patch is clamped in the line that makes it, and the optimizer refuses it.
# truth: nonleaf-parameter error patch
import torch
from torch import nn


def make_patch():
    return torch.rand(3, 4, 4, requires_grad=True).clamp(0.1, 0.9)  # nonleaf-parameter


torch.manual_seed(11)
victim = nn.Sequential(nn.Flatten(), nn.Linear(48, 2)).requires_grad_(False)
patch = make_patch()
attack = torch.optim.Adam([patch], lr=0.01)
for _ in range(10):
    images = torch.rand(8, 3, 4, 4) + patch
    loss = -nn.functional.cross_entropy(victim(images), torch.zeros(8, dtype=torch.long))
    attack.zero_grad()
    loss.backward()
    attack.step()
