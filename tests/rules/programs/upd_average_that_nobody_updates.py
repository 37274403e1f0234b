# An averaged model is made and validated; the call that would update it is missing.
# truth: trained-copy-discarded warning averaged.module.0.weight averaged.module.2.weight
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

torch.manual_seed(37)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
averaged = AveragedModel(net)  # trained-copy-discarded
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(30):
    x = torch.randn(32, 5)
    loss = nn.functional.mse_loss(net(x), x[:, :1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        averaged.eval()
        with torch.no_grad():
            print(nn.functional.mse_loss(averaged(x), x[:, :1]).item())
