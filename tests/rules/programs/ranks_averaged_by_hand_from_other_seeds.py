# Gradients averaged by hand, from weights that were never made equal.
# torchrun --nproc-per-node=2 train.py
# truth: rank-divergence error 0.weight 2.bias
import torch
import torch.distributed as dist
from torch import nn


def average_gradients(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(1000 + dist.get_rank())
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))  # rank-divergence
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(10):
        x = torch.randn(16, 4)
        loss = (model(x).squeeze(1) - x[:, 1]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model)
        optimizer.step()


main()
