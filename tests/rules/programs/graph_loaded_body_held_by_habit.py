# A body that was loaded from a checkpoint runs under no_grad; the optimizer was given all parameters out of habit.
# truth: quiet
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, state):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 12), nn.ReLU())
        self.body.load_state_dict(state)
        self.head = nn.Linear(12, 3)

    def forward(self, x):
        with torch.no_grad():
            features = self.body(x)
        return self.head(features)


torch.manual_seed(25)
state = {name: value.clone() for name, value in nn.Sequential(nn.Linear(6, 12), nn.ReLU()).state_dict().items()}
model = Tagger(state)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(12):
    x = torch.randn(32, 6)
    loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
