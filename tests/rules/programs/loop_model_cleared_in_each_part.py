# A trainer accumulates over parts of the batch; the model is cleared, to zeros, in front of each part.
# truth: zero-grad-misplaced error weight bias
import torch
from torch import nn


class Trainer:
    def __init__(self, net, parts):
        self.net, self.parts = net, parts
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

    def part(self, x):
        self.net.zero_grad(set_to_none=False)  # zero-grad-misplaced
        (self.net(x).pow(2).mean() / self.parts).backward()

    def batch(self, x):
        for part in x.chunk(self.parts):
            self.part(part)
        self.optimizer.step()


torch.manual_seed(2)
trainer = Trainer(nn.Linear(4, 3), parts=3)
for _ in range(12):
    trainer.batch(torch.randn(24, 4))
