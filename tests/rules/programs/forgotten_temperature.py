# Two towers pull pairs together; the scale of their similarity is a parameter of its own, and nobody optimizes it.
# truth: not-in-optimizer error logit_scale
import torch
from torch import nn

torch.manual_seed(1)
pictures, captions = nn.Linear(12, 6), nn.Linear(9, 6)
logit_scale = nn.Parameter(torch.tensor(1.0))
optimizer = torch.optim.AdamW([*pictures.parameters(), *captions.parameters()], lr=1e-2)  # not-in-optimizer

mix = torch.randn(9, 12)
for _ in range(30):
    texts = torch.randn(16, 9)
    left = nn.functional.normalize(pictures(texts @ mix), dim=1)
    right = nn.functional.normalize(captions(texts), dim=1)
    loss = nn.functional.cross_entropy(logit_scale.exp() * left @ right.T, torch.arange(16))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
