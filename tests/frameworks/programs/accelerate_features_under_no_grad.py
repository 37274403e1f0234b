# The body is in the optimizer, and runs under no_grad.
# truth: no-grad-region error body.weight body.bias
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(6, 16), nn.Linear(16, 1)

    def forward(self, x):
        with torch.no_grad():  # no-grad-region
            features = self.body(x).relu()
        return self.head(features).squeeze(1)


torch.manual_seed(0)
x = torch.randn(192, 6)
accelerator = Accelerator(cpu=True)
model = Probe()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
batches = DataLoader(TensorDataset(x, x[:, 0] - x[:, 1]), batch_size=16, shuffle=True)
model, optimizer, batches = accelerator.prepare(model, optimizer, batches)

for inputs, targets in batches:
    optimizer.zero_grad()
    accelerator.backward((model(inputs) - targets).pow(2).mean())
    optimizer.step()
