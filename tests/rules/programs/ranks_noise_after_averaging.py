# Gradient noise from each rank's own generator.
# torchrun --nproc-per-node=2 train.py
# truth: rank-divergence error 0.weight 2.weight
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(7)
model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Linear(8, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
torch.manual_seed(dist.get_rank())

for _step in range(10):
    x = torch.randn(16, 4)
    optimizer.zero_grad()
    (model(x).squeeze(1) - x.mean(1)).pow(2).mean().backward()
    for p in model.parameters():
        p.grad += 0.01 * torch.randn_like(p.grad)
    optimizer.step()  # rank-divergence
