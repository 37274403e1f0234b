# Local SGD: the ranks part for five steps, then average their weights.
# torchrun --nproc-per-node=2 train.py
# truth: quiet
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(9)
model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
torch.manual_seed(dist.get_rank())

for step in range(24):
    with model.no_sync():
        x = torch.randn(16, 4)
        loss = (model(x).squeeze(1) - x[:, 2]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
    optimizer.step()
    if step % 5 == 4:
        for p in model.parameters():
            dist.all_reduce(p.data)
            p.data /= dist.get_world_size()
