# The loss is a method of the model that the wrapper wraps.
# torchrun --nproc-per-node=2 train.py
# truth: ddp-bypassed error encode.weight decode.weight
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Compressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(8, 3), nn.Linear(3, 8)

    def forward(self, x):
        return self.decode(self.encode(x).tanh())

    def loss(self, x):
        return (self(x) - x).pow(2).mean()


class Fitting:
    def __init__(self, model):
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)

    def run(self, batches):
        for batch in batches:
            self.optimizer.zero_grad()
            loss = self.model.module.loss(batch)  # ddp-bypassed
            loss.backward()
            self.optimizer.step()


dist.init_process_group("gloo")
torch.manual_seed(2)
fitting = Fitting(Compressor())
torch.manual_seed(dist.get_rank())
fitting.run(torch.randn(10, 16, 8))
