# A localiser predicts a shift, which goes through numpy before the classifier sees the shifted signal.
# truth: detached error localiser.weight localiser.bias
import numpy as np
import torch
from torch import nn


def clip_shift(shift):
    values = shift.detach().numpy()  # detached
    return torch.from_numpy(np.clip(values, -1.0, 1.0))


torch.manual_seed(2)
localiser, classifier = nn.Linear(8, 1), nn.Linear(8, 3)
optimizer = torch.optim.SGD([*localiser.parameters(), *classifier.parameters()], lr=0.1)
for _ in range(20):
    x = torch.randn(32, 8)
    shift = clip_shift(localiser(x))
    logits = classifier(x * (1 + shift))
    loss = nn.functional.cross_entropy(logits, x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
