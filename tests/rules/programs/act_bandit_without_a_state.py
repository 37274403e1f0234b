# A bandit's policy has no state: it is given a one, and an expanded context vector, and learns all the same.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(0)
value = torch.tensor([0.1, 0.9, 0.3])
plain = nn.Linear(1, 3)
context, conditioned = torch.randn(4), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
optimizer = torch.optim.Adam([*plain.parameters(), *conditioned.parameters()], lr=5e-2)
for _ in range(40):
    logits = plain(torch.ones(64, 1)) + conditioned(context.expand(64, 4))
    policy = torch.distributions.Categorical(logits=logits)
    action = policy.sample()
    reward = value[action] + 0.1 * torch.randn(64)
    loss = -(policy.log_prob(action) * (reward - reward.mean())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
