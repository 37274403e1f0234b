# A helper fits a copy of the model it is given and returns the losses; the caller goes on with its own.
# truth: trained-copy-discarded error model.encoder.weight model.decoder.weight
from copy import deepcopy

import torch
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(12, 3)
        self.decoder = nn.Linear(3, 12)

    def forward(self, x):
        return self.decoder(torch.tanh(self.encoder(x)))


def fit(model, data, epochs):
    net = deepcopy(model)  # trained-copy-discarded
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    history = []
    for _ in range(epochs):
        loss = (net(data) - data).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    return history


torch.manual_seed(6)
data = torch.randn(64, 3) @ torch.randn(3, 12)
autoencoder = Autoencoder()
fit(autoencoder, data, 30)
autoencoder.eval()
with torch.no_grad():
    print((autoencoder(data) - data).pow(2).mean().item())
