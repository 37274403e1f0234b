"""The same three-layer MLP with ReLU and with sigmoid: how much of the gradient arrives at the input layer.

Run it: python examples/relu_against_sigmoid.py
"""

import torch
from torch import nn

from whygrad import tap


def mean_gradient_by_layer(activation):
    """Return mean |g| of each layer's weight after one backward pass, input layer first."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), activation(), nn.Linear(32, 32), activation(), nn.Linear(32, 4))
    inputs, targets = torch.randn(64, 16), torch.randint(4, (64,))
    taps = [tap(layer.weight, "weight") for layer in model if isinstance(layer, nn.Linear)]
    nn.functional.cross_entropy(model(inputs), targets).backward()
    return [tapped.statistics.mean_abs for tapped in taps]


relu, sigmoid = mean_gradient_by_layer(nn.ReLU), mean_gradient_by_layer(nn.Sigmoid)
print("layer  ReLU mean |g|  sigmoid mean |g|")
for number, (left, right) in enumerate(zip(relu, sigmoid, strict=True), start=1):
    print(f"{number}  {left:17.6f}  {right:16.6f}")
print(f"ReLU: layer 1 gets {relu[0] / relu[2]:.0%} of what layer 3 gets; sigmoid: {sigmoid[0] / sigmoid[2]:.1%}")
