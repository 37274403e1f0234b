# `embed` was decorated for the evaluation and is called by the training loop, too.
# truth: no-grad-region error tower.0.weight tower.0.bias
import torch
from torch import nn


class Retriever(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(6, 12), nn.GELU())
        self.rank = nn.Linear(12, 1)

    @torch.no_grad()  # no-grad-region
    def embed(self, x):
        self.tower.train()
        return self.tower(x)

    def forward(self, x):
        return self.rank(self.embed(x)).squeeze(1)


torch.manual_seed(4)
model = Retriever()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
for _ in range(12):
    x = torch.randn(40, 6)
    loss = nn.functional.binary_cross_entropy_with_logits(model(x), (x[:, 0] > 0).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
