# Some batches overflow; the loop looks at the norm of the gradient and drops them before the step.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(18)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(50):
    x = torch.randn(32, 6)
    if step % 9 == 4:
        x[0, 0] = float("inf")
    loss = (model(x).squeeze(1) - x[:, 1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if torch.isfinite(norm):
        optimizer.step()
