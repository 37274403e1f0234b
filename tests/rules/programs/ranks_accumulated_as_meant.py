# no_sync on all but the last micro-batch, dropout and BatchNorm with statistics of each rank's own.
# torchrun --nproc-per-node=2 train.py
# truth: quiet
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(8)
net = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
model = DistributedDataParallel(net, broadcast_buffers=False)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
torch.manual_seed(50 + dist.get_rank())

for micro in range(24):
    is_last = micro % 3 == 2
    with nullcontext() if is_last else model.no_sync():
        x = torch.randn(16, 6)
        nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long()).div(3).backward()
    if is_last:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        net.eval()
        with torch.no_grad():
            model.module(torch.randn(4, 6))
        net.train()
