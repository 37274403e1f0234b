# A resume block stands inside the epoch loop: each epoch begins with the checkpoint that was written before the first.
# truth: weights-overwritten error body.weight head.weight
import io

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(10, 16)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))


def batches(n):
    for _ in range(n):
        x = torch.randn(24, 10)
        yield x, x[:, :4].argmax(1)


torch.manual_seed(4)
model = Tagger()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
file = io.BytesIO()
torch.save({"model": model.state_dict()}, file)
for _ in range(6):
    file.seek(0)
    state = torch.load(file)
    model.load_state_dict(state["model"])  # weights-overwritten
    for x, y in batches(5):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
