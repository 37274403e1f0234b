# A recurrent net without a squashing function that clips: its gradients are bounded, and it learns.
# truth: quiet
import torch
from torch import nn


class Memory(nn.Module):
    def __init__(self, size=12):
        super().__init__()
        self.step = nn.Linear(size + 3, size)
        self.out = nn.Linear(size, 3)
        self.size = size

    def forward(self, x):
        state = x.new_zeros(x.size(1), self.size)
        for each in x:
            state = self.step(torch.cat([each, state], dim=1))
        return self.out(state)


torch.manual_seed(14)
model = Memory()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(60):
    x = torch.nn.functional.one_hot(torch.randint(0, 3, (4 + step % 20, 32)), 3).float()
    loss = nn.functional.cross_entropy(model(x), x[-1].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
