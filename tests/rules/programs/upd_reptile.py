# Reptile: a few steps on a task, then a tenth of the way from where they began to where they led.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(26)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
inner = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(12):
    before = {k: v.clone() for k, v in model.state_dict().items()}
    phase = torch.rand(1) * 3
    for _ in range(4):
        x = torch.rand(16, 1) * 6 - 3
        loss = nn.functional.mse_loss(model(x), torch.sin(x + phase))
        inner.zero_grad()
        loss.backward()
        inner.step()
    after = model.state_dict()
    model.load_state_dict({k: before[k] + 0.3 * (after[k] - before[k]) for k in before})
