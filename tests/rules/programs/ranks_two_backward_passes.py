# Two losses, two backward passes: only the first is averaged.
# torchrun --nproc-per-node=2 train.py
# truth: rank-divergence error 0.weight 2.weight
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(4)
model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4)))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
torch.manual_seed(dist.get_rank())

for _step in range(10):
    x, noise = torch.randn(16, 4), 0.1 * torch.randn(16, 4)
    clean, noisy = model(x), model(x + noise)
    optimizer.zero_grad()
    (clean - x).pow(2).mean().backward()
    (noisy - x).pow(2).mean().backward()  # rank-divergence
    optimizer.step()
