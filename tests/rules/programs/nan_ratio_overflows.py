# An importance ratio is the exponential of a difference of log-probabilities, one of which is of a stale batch.
# truth: nonfinite-gradient error weight bias
import torch
from torch import nn


def surrogate(new, old, advantage):
    ratio = torch.exp(new - old)  # nonfinite-gradient
    return -(ratio * advantage).mean()


torch.manual_seed(7)
policy = nn.Linear(6, 3)
optimizer = torch.optim.SGD(policy.parameters(), lr=1e-2)
for step in range(30):
    states = torch.randn(10, 6)
    actions = torch.randint(0, 3, (10,))
    new = policy(states).log_softmax(dim=-1).gather(1, actions[:, None]).squeeze(1)
    old = new.detach() - 0.05 * torch.randn(10)
    if step == 22:
        old[0] = -300.0
    loss = surrogate(new, old, torch.randn(10))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
