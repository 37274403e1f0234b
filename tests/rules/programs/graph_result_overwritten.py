# The output of the attention is replaced by that of the next layer, which takes the input again.
# truth: unreached-parameter warning 0.mix.weight 0.mix.bias
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 8)
        self.feed = nn.Linear(8, 8)

    def forward(self, x):
        h = torch.tanh(self.mix(x))  # unreached-parameter
        h = torch.tanh(self.feed(x))
        return x + h


torch.manual_seed(10)
model = nn.Sequential(Block(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    x = torch.randn(16, 8)
    loss = (model(x) - x[:, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
