# The wrapper is not called, and the program averages the gradients itself.
# torchrun --nproc-per-node=2 train.py
# truth: quiet
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(11)
adapter = DistributedDataParallel(nn.Linear(6, 6))
frozen = nn.Linear(6, 1).requires_grad_(False)
optimizer = torch.optim.AdamW(adapter.parameters(), lr=1e-2)
torch.manual_seed(dist.get_rank())

for _step in range(10):
    x = torch.randn(16, 6)
    loss = (frozen(x + adapter.module(x)).squeeze(1) - x[:, 0]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    for p in adapter.parameters():
        dist.all_reduce(p.grad)
        p.grad /= 2
    optimizer.step()
