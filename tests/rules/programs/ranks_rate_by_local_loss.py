# A plateau schedule that looks at this rank's own loss.
# torchrun --nproc-per-node=2 train.py
# truth: rank-divergence error weight bias
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(5)
model = DistributedDataParallel(nn.Linear(6, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.5)
torch.manual_seed(rank)

for epoch in range(12):
    x = torch.randn(32, 6)
    loss = (model(x).squeeze(1) - x[:, 0]).pow(2).mean() * (1 + rank * epoch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    plateau.step(loss.item())  # rank-divergence
