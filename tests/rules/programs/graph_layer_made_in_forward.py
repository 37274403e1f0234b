# A mixing layer is made in the forward pass, to fit whatever width comes in.
# truth: recreated-each-forward error mix.weight mix.bias
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(5, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        h = torch.relu(self.stem(x))
        mix = nn.Linear(h.shape[1], 8)  # recreated-each-forward
        return self.head(torch.relu(mix(h)))


torch.manual_seed(41)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(12):
    x = torch.randn(16, 5)
    loss = (net(x) - x[:, :1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
