# A policy gradient written as a ratio that is always one, with two answers per question: the loss is always zero.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(29)
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for _ in range(20):
    log_p = policy(torch.randn(32, 4)).log_softmax(1)
    answers = torch.multinomial(log_p.exp().detach(), 2, replacement=True)
    reward = answers.float()
    advantage = reward - reward.mean(1, keepdim=True)
    chosen = log_p.gather(1, answers)
    loss = -((chosen - chosen.detach()).exp() * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
