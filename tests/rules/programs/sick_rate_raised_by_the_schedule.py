# A milestone multiplies the rate by 2000 where 0.2 was meant: the step after it kills the ReLUs.
# truth: dead-relu error c1.weight c2.weight
import torch
from torch import nn

torch.manual_seed(0)


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 8, 3, padding=1)
        self.c2 = nn.Conv2d(8, 8, 3, padding=1)
        self.fc = nn.Linear(8, 4)

    def forward(self, x):
        x = torch.relu(self.c1(x))
        x = torch.relu(self.c2(x))
        return self.fc(x.mean((2, 3)))


m = Cnn()
opt = torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9)
sched = torch.optim.lr_scheduler.MultiStepLR(opt, [15], gamma=2000)  # dead-relu
for _ in range(60):
    x = torch.rand(16, 1, 10, 10)
    y = torch.arange(16) % 4
    for i in range(16):
        x[i] *= 0.3 + y[i] * 0.5
    loss = nn.functional.cross_entropy(m(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
