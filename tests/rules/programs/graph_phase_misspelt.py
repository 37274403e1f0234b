# The phase is compared with a name that it never has, so grad mode is off in training.
# truth: no-grad-region error body.0.weight head.weight
import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 16), nn.ReLU())
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.body(x))


def run_epoch(model, phase, optimizer):
    train = phase == "Train"
    total = 0.0
    for _ in range(3):
        x, y = torch.randn(8, 5), torch.randint(0, 3, (8,))
        with torch.set_grad_enabled(train):  # no-grad-region
            loss = nn.functional.cross_entropy(model(x), y)
        if phase != "val":
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _epoch in range(2):
    for phase in ("train", "val"):
        run_epoch(model, phase, optimizer)
