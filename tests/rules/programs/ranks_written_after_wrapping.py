# A layer initialised anew after the wrapper has made all ranks equal.
# torchrun --nproc-per-node=2 train.py
# truth: rank-divergence error out.weight
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.out = nn.Linear(6, 6), nn.Linear(6, 1)

    def forward(self, x):
        return self.out(self.mix(x).relu()).squeeze(1)


dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(Scorer())
nn.init.xavier_uniform_(model.module.out.weight)  # rank-divergence
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for _step in range(10):
    x = torch.randn(16, 6)
    loss = (model(x) - x[:, 0]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
