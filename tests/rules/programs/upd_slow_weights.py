# Lookahead: every five steps the weights go half of the way back to the slow ones.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(23)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
slow = [p.detach().clone() for p in model.parameters()]
for step in range(40):
    x = torch.randn(32, 6)
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 4:
        for p, s in zip(model.parameters(), slow, strict=True):
            s.add_(p.detach() - s, alpha=0.5)
            p.data.copy_(s)
