# Heads by turns, with find_unused_parameters, and an average of the weights on rank 0.
# torchrun --nproc-per-node=2 train.py
# truth: quiet
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Tasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.heads = nn.ModuleDict({name: nn.Linear(8, 1) for name in ("price", "size")})

    def forward(self, x, task):
        return self.heads[task](self.body(x).tanh()).squeeze(1)


dist.init_process_group("gloo")
torch.manual_seed(13)
model = DistributedDataParallel(Tasks(), find_unused_parameters=True)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
torch.manual_seed(dist.get_rank())
averaged = {name: p.detach().clone() for name, p in model.named_parameters()} if dist.get_rank() == 0 else {}

for step in range(12):
    x = torch.randn(16, 4)
    loss = (model(x, ("price", "size")[step % 2]) - x[:, step % 2]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for name, p in model.named_parameters():
        if name in averaged:
            averaged[name].lerp_(p.detach(), 0.01)
