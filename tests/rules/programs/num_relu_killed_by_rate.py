# A convolutional counter with ReLU as a function: the first large steps push every unit below zero.
# truth: dead-relu error conv.weight conv.bias mix.weight mix.bias
import torch
import torch.nn.functional as F
from torch import nn


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3)
        self.mix = nn.Linear(6 * 36, 12)
        self.out = nn.Linear(12, 1)

    def forward(self, x):
        h = F.relu(self.conv(x)).flatten(1)
        h = F.relu(self.mix(h))
        return self.out(h).squeeze(1)


torch.manual_seed(1)
model = Counter()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)  # dead-relu
for _ in range(40):
    image = (torch.rand(32, 1, 8, 8) < 0.3).float()
    loss = (model(image) - image.sum(dim=(1, 2, 3))).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 50.0)
    optimizer.step()
