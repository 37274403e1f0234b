# Two stages of a pipeline, and a further model on rank 0 only.
# torchrun --nproc-per-node=2 train.py
# truth: quiet
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(10)
stage = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
head = nn.Linear(4, 1) if rank == 1 else None
parameters = [*stage.parameters(), *(head.parameters() if head is not None else ())]
optimizer = torch.optim.SGD(parameters, lr=0.1)
if rank == 0:  # a model of its own beside the pipeline
    probe = nn.Linear(4, 1)
    probe_optimizer = torch.optim.Adam(probe.parameters(), lr=0.01)

for _step in range(10):
    optimizer.zero_grad()
    if rank == 0:
        h = stage(torch.randn(16, 4))
        dist.send(h.detach(), 1)
        gradient = torch.empty_like(h)
        dist.recv(gradient, 1)
        h.backward(gradient)
        probe_optimizer.zero_grad()
        (probe(h.detach()) - 1).pow(2).mean().backward()
        probe_optimizer.step()
    else:
        h = torch.empty(16, 4)
        dist.recv(h, 0)
        h.requires_grad_()
        (head(stage(h)) - 1).pow(2).mean().backward()
        dist.send(h.grad, 0)
    optimizer.step()
