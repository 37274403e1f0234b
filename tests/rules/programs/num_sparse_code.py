# A wide dictionary of which an L1 penalty leaves few units active, behind a BatchNorm that makes a bias idle.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(19)
encoder = nn.Sequential(nn.Linear(20, 128), nn.BatchNorm1d(128), nn.ReLU())
decoder = nn.Linear(128, 20)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
for _ in range(80):
    x = torch.randn(64, 3) @ torch.randn(3, 20, generator=torch.Generator().manual_seed(0))
    code = encoder(x)
    loss = nn.functional.mse_loss(decoder(code), x) + 0.02 * code.abs().sum(dim=1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
