# A leaky integrate-and-fire layer without a surrogate gradient: the spikes have no derivative.
# truth: nondifferentiable-op error synapses.weight synapses.bias
import torch
from torch import nn


class Spiking(nn.Module):
    def __init__(self):
        super().__init__()
        self.synapses = nn.Linear(6, 20)
        self.readout = nn.Linear(20, 2)

    def forward(self, x, steps=4):
        voltage = torch.zeros(len(x), 20)
        total = torch.zeros(len(x), 2)
        for _ in range(steps):
            voltage = 0.9 * voltage + self.synapses(x)
            spikes = (voltage > 0.5).float()  # nondifferentiable-op
            voltage = voltage * (1 - spikes)
            total = total + self.readout(spikes)
        return total / steps


torch.manual_seed(7)
net = Spiking()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(12):
    x = torch.randn(32, 6)
    loss = nn.functional.cross_entropy(net(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
