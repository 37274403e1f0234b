# After a freeze of the whole model, `requires_grad = True` is set on a module: a mere attribute.
# truth: frozen-parameter error fc.weight fc.bias
import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features, self.fc = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.fc(self.features(x).relu())


m = Net()
for p in m.parameters():
    p.requires_grad = False
m.fc.requires_grad = True  # frozen-parameter
opt = torch.optim.SGD(m.fc.parameters(), 0.1)
for _ in range(4):
    loss = nn.functional.cross_entropy(m(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
