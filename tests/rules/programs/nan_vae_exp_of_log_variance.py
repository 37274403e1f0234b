# The encoder's log-variance is not bounded: for one outlier exp overflows.
# truth: nonfinite-gradient error encoder.weight decoder.weight
import torch
from torch import nn


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(10, 6)
        self.decoder = nn.Linear(3, 10)

    def forward(self, x):
        mean, log_variance = self.encoder(x).chunk(2, dim=-1)
        code = mean + torch.randn_like(mean) * (0.5 * log_variance).clamp(max=5.0).exp()
        return self.decoder(code), mean, log_variance


def divergence(mean, log_variance):
    return -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum(dim=1).mean()  # nonfinite-gradient


torch.manual_seed(5)
model = Vae()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(20):
    x = torch.randn(16, 10)
    if step == 12:
        x[0] = 400.0 * torch.sign(model.encoder.weight[3:].sum(dim=0).detach())
    rebuilt, mean, log_variance = model(x)
    loss = (rebuilt - x).abs().mean() + 1e-3 * divergence(mean, log_variance)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
