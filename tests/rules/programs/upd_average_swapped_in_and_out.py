# A moving average is swapped in for validation and swapped out again, from clones, once in an epoch.
# truth: quiet
import torch
from torch import nn


class Average:
    def __init__(self, model, decay=0.98):
        self.model, self.decay = model, decay
        self.shadow = {k: v.clone() for k, v in model.state_dict().items()}

    def update(self):
        for k, v in self.model.state_dict().items():
            self.shadow[k].mul_(self.decay).add_(v, alpha=1 - self.decay)

    def __enter__(self):
        self.backup = {k: v.clone() for k, v in self.model.state_dict().items()}
        self.model.load_state_dict(self.shadow)

    def __exit__(self, *_):
        self.model.load_state_dict(self.backup)


torch.manual_seed(22)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
average = Average(model)
for _ in range(6):
    for _ in range(6):
        x = torch.randn(32, 6)
        loss = (model(x) - x[:, :1]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update()
    with average, torch.no_grad():
        print((model(x) - x[:, :1]).pow(2).mean().item())
