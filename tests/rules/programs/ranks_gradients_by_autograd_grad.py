# torch.autograd.grad runs no hook of the wrapper: no gradient is averaged, though the wrapper is called.
# torchrun --nproc-per-node=2 train.py
# truth: ddp-bypassed error 0.weight 2.weight
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(14)
model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Linear(8, 1)))
parameters = list(model.parameters())
optimizer = torch.optim.Adam(parameters, lr=1e-2)
torch.manual_seed(dist.get_rank())

for _step in range(10):
    x = torch.randn(16, 4)
    loss = (model(x).squeeze(1) - x[:, 3]).pow(2).mean()
    gradients = torch.autograd.grad(loss, parameters)  # ddp-bypassed
    for p, gradient in zip(parameters, gradients, strict=True):
        p.grad = gradient
    optimizer.step()
