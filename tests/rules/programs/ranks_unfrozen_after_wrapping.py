# The wrapper averages what required grad when it was made.
# torchrun --nproc-per-node=2 train.py
# truth: rank-divergence error 0.weight 0.bias
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(3)
body, head = nn.Linear(5, 9), nn.Linear(9, 1)
body.requires_grad_(False)
model = DistributedDataParallel(nn.Sequential(body, nn.GELU(), head))  # rank-divergence
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
torch.manual_seed(dist.get_rank())

for step in range(12):
    if step == 4:
        body.requires_grad_(True)
    x = torch.randn(16, 5)
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
