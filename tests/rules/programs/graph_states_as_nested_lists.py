# A recurrent cell by hand collects its states as lists, and makes a tensor of them that only FloatTensor sees.
# truth: detached error to_h.weight to_h.bias
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_h = nn.Linear(3 + 8, 8)
        self.out = nn.Linear(8, 1)

    def forward(self, x):
        h = torch.zeros(x.size(0), 8)
        states = []
        for t in range(x.size(1)):
            h = torch.tanh(self.to_h(torch.cat([x[:, t], h], 1)))
            states.append(h.tolist())  # detached
        states = torch.FloatTensor(states)
        return self.out(states[-1])


torch.manual_seed(0)
net = Cell()
opt = torch.optim.Adam(net.parameters(), 1e-2)
for _epoch in range(8):
    x = torch.randn(16, 5, 3)
    y = x.sum((1, 2)).unsqueeze(1)
    loss = nn.functional.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
