# Accumulation over three micro-batches: the first one is averaged, the last one is not.
# torchrun --nproc-per-node=2 train.py
# truth: rank-divergence error 0.weight 3.bias
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(1)
net = DistributedDataParallel(nn.Sequential(nn.Linear(6, 12), nn.LayerNorm(12), nn.ReLU(), nn.Linear(12, 2)))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
torch.manual_seed(100 + dist.get_rank())


def micro_batch():
    x = torch.randn(8, 6)
    nn.functional.cross_entropy(net(x), (x[:, 0] > 0).long()).div(3).backward()


for _step in range(8):
    optimizer.zero_grad()
    micro_batch()
    for _ in range(2):
        with net.no_sync():  # rank-divergence
            micro_batch()
    optimizer.step()
