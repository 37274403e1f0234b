# Hooks keep the first rows of a table as they are, halve a gradient, and count how often one came.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(30)
table, head = nn.Embedding(12, 6), nn.Linear(6, 2)
seen = []


def keep_rows(grad):
    kept = grad.clone()
    kept[:4] = 0
    return kept


table.weight.register_hook(keep_rows)
head.bias.register_hook(lambda grad: grad * 0.5)
head.weight.register_post_accumulate_grad_hook(lambda p: seen.append(float(p.grad.norm())))
optimizer = torch.optim.Adam([*table.parameters(), *head.parameters()], lr=2e-2)
for _ in range(24):
    ids = torch.randint(0, 12, (32,))
    loss = nn.functional.cross_entropy(head(table(ids)), ids % 2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
