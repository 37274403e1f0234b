"""Gradient statistics of each parameter: hooks written by hand, and taps that do the same.

Run it: python examples/hooks_on_an_mlp.py
"""

import torch
from torch import nn

from whygrad import tap

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
inputs, targets = torch.randn(16, 4), torch.randint(2, (16,))

by_hand = {}


def record(name):
    def hook(gradient):
        by_hand[name] = gradient.abs().mean().item(), gradient.std().item()

    return hook


for name, parameter in model.named_parameters():
    parameter.register_hook(record(name))
taps = {name: tap(parameter, name) for name, parameter in model.named_parameters()}

nn.functional.cross_entropy(model(inputs), targets).backward()

print("parameter  hook: mean |g|       std   tap: mean |g|       std")
for name, tapped in taps.items():
    mean_abs, std = by_hand[name]
    numbers = tapped.statistics
    print(f"{name:9}  {mean_abs:14.6f}  {std:.6f}  {numbers.mean_abs:14.6f}  {numbers.std:.6f}")
