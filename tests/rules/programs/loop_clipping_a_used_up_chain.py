# A chain of two generators goes to the optimizer, and every step to the clipping as well.
# truth: exhausted-iterator error encoder.weight decoder.bias
import itertools

import torch
from torch import nn

torch.manual_seed(14)
encoder, decoder = nn.Linear(6, 2), nn.Linear(2, 6)
both = itertools.chain(encoder.parameters(), decoder.parameters())
optimizer = torch.optim.Adam(both, lr=1e-2)
for _ in range(12):
    x = torch.randn(16, 6)
    optimizer.zero_grad()
    (decoder(encoder(x)) - x).pow(2).mean().backward()
    torch.nn.utils.clip_grad_norm_(both, 1.0)  # exhausted-iterator
    optimizer.step()
