# REINFORCE: actions are sampled, rewards are plain numbers, and the log-probability carries the gradient.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(23)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
baseline = 0.0
for _ in range(15):
    state = torch.randn(64, 4)
    choice = torch.distributions.Categorical(logits=policy(state))
    action = choice.sample()
    reward = (action == state[:, :3].argmax(1)).float()
    baseline = 0.9 * baseline + 0.1 * reward.mean().item()
    loss = -(choice.log_prob(action) * (reward - baseline)).mean() - 0.01 * choice.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    greedy = policy(state).argmax(1).tolist()
