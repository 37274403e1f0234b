# The projector gets gradients and is read from a file in the middle of the run; no optimizer ever holds it.
# truth: not-in-optimizer error projector.weight projector.bias
import copy

import torch
from torch import nn


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 16)
        self.projector = nn.Linear(16, 4)

    def forward(self, x):
        return self.projector(torch.relu(self.encoder(x)))


torch.manual_seed(21)
model = Matcher()
optimizer = torch.optim.Adam(model.encoder.parameters(), lr=1e-2)  # not-in-optimizer
best = copy.deepcopy(model.state_dict())
for step in range(24):
    x = torch.randn(32, 8)
    loss = (model(x) - x[:, :4]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 8:
        best = {name: value + 0.01 for name, value in model.state_dict().items()}
    if step == 16:
        model.load_state_dict(best)
