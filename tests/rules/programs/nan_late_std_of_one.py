# Rewards are standardised per group; at step 125 a group has a single member, whose spread is NaN.
# truth: nonfinite-gradient error weight bias
import torch
from torch import nn


class Standardise:
    def __init__(self, eps=1e-6):
        self.eps = eps

    def __call__(self, values):
        centred = values - values.mean()
        return centred / (values.std() + self.eps)  # nonfinite-gradient


torch.manual_seed(1)
policy = nn.Linear(5, 4)
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
standardise = Standardise()
for step in range(135):
    size = 1 if step == 125 else 12
    states = torch.randn(size, 5)
    distribution = torch.distributions.Categorical(logits=policy(states))
    actions = distribution.sample()
    rewards = (actions == states[:, :4].argmax(dim=1)).float()
    loss = -(distribution.log_prob(actions) * standardise(rewards)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
