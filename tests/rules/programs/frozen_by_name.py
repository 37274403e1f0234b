# All but the classifier is to be frozen; the classifier is called `head` here, so the filter freezes it too.
# truth: frozen-parameter error encoder.weight head.weight
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(7, 5)
        self.head = nn.Linear(5, 3)

    def forward(self, x):
        return self.head(self.encoder(x).relu())


torch.manual_seed(7)
net = Net()
for name, parameter in net.named_parameters():
    if "classifier" not in name:
        parameter.requires_grad_(False)  # frozen-parameter
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for _ in range(10):
    x = torch.randn(8, 7)
    loss = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
