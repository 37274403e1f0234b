# The discriminator keeps the gradient of every step, and what the generator's loss leaves in it.
# truth: missing-zero-grad error d.0.weight
import torch
from torch import nn

torch.manual_seed(0)


class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        self.d = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(), nn.Linear(16, 1))


gan = Gan()
og = torch.optim.Adam(gan.g.parameters(), 1e-3)
od = torch.optim.Adam(gan.d.parameters(), 1e-3)
bce = nn.BCEWithLogitsLoss()
for _ in range(60):
    real = torch.randn(32, 2) * 0.3 + 2
    fake = gan.g(torch.randn(32, 4))
    ld = bce(gan.d(real), torch.ones(32, 1)) + bce(gan.d(fake.detach()), torch.zeros(32, 1))
    ld.backward()  # missing-zero-grad
    od.step()
    og.zero_grad()
    lg = bce(gan.d(fake), torch.ones(32, 1))
    lg.backward()
    og.step()
