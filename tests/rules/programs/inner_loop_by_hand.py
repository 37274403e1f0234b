# A learner is adapted by hand through `.data` for each task, an outer optimizer trains the features it looks at.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(18)
features, learner = nn.Linear(4, 6), nn.Linear(6, 1)
outer = torch.optim.Adam(features.parameters(), lr=1e-2)
for _ in range(15):
    task = torch.randn(4, 1)
    for _ in range(3):
        x = torch.randn(16, 4)
        loss = (learner(torch.tanh(features(x))) - x @ task).pow(2).mean()
        outer.zero_grad()
        learner.zero_grad()
        loss.backward()
        for parameter in learner.parameters():
            parameter.data.add_(parameter.grad, alpha=-0.1)
        outer.step()
