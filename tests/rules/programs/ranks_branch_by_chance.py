# A branch that stops being used after four steps.
# torchrun --nproc-per-node=2 train.py
# truth: ddp-unused-parameter error second.weight
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 1), nn.Linear(4, 1)

    def forward(self, x, use_second):
        return self.first(x) + self.second(x) if use_second else self.first(x)


dist.init_process_group("gloo")
torch.manual_seed(6)
model = DistributedDataParallel(Experts())  # ddp-unused-parameter
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for step in range(10):
    loss = (model(torch.randn(8, 4), use_second=step < 4) - 1).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
