# The schedule is sized in epochs and stepped in batches: from a third of the run on, the rate is 0.
# truth: zero-learning-rate error 0.weight 2.weight
import torch
from torch import nn

torch.manual_seed(19)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
epochs, batches = 12, 3
schedule = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=epochs, power=1.0)
for _ in range(epochs):
    for _ in range(batches):
        x = torch.randn(32, 5)
        loss = nn.functional.mse_loss(model(x), x[:, :1].abs())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()  # zero-learning-rate
