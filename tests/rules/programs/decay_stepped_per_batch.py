# A decay over ten epochs is stepped once per batch: it is over before the first epoch is.
# truth: zero-learning-rate error weight bias
import torch
from torch import nn

torch.manual_seed(6)
EPOCHS, BATCHES = 10, 12
model = nn.Linear(4, 2)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2)
decay = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=EPOCHS, power=2.0)
for _ in range(EPOCHS):
    for _ in range(BATCHES):
        x = torch.randn(16, 4)
        loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        decay.step()  # zero-learning-rate
