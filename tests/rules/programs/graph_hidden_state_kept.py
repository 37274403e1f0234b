# The hidden state of a recurrent network goes from batch to batch with its whole history.
# truth: graph-freed error hidden
import torch
from torch import nn

torch.manual_seed(14)
cell, head = nn.GRUCell(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=1e-2)
hidden = torch.zeros(16, 8)
for _ in range(10):
    x = torch.randn(16, 4)
    hidden = cell(x, hidden)  # graph-freed
    loss = (head(hidden) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
