# Two wrapped models that take turns, one of them called past its wrapper where it only passes gradients on.
# torchrun --nproc-per-node=2 train.py
# truth: quiet
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(12)
maker = DistributedDataParallel(nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 2)))
judge = DistributedDataParallel(nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)))
of_maker = torch.optim.Adam(maker.parameters(), lr=1e-3)
of_judge = torch.optim.Adam(judge.parameters(), lr=1e-3)
torch.manual_seed(dist.get_rank())

for _step in range(10):
    real, fake = torch.randn(16, 2) + 2, maker(torch.randn(16, 3))
    scores = judge(torch.cat([real, fake.detach()]))
    of_judge.zero_grad()
    F.binary_cross_entropy_with_logits(scores, torch.cat([torch.ones(16, 1), torch.zeros(16, 1)])).backward()
    of_judge.step()
    judge.requires_grad_(False)
    of_maker.zero_grad()
    F.softplus(-judge.module(fake)).mean().backward()
    of_maker.step()
    judge.requires_grad_(True)
