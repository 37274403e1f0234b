# Adam's usual rate was divided by a thousand, and the optimizer became SGD: nothing gets anywhere.
# truth: update-too-small warning 0.weight 2.weight
import torch
from torch import nn


class Trainer:
    def __init__(self, model, rate):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=rate)  # update-too-small

    def step(self, x, y):
        loss = nn.functional.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


torch.manual_seed(13)
trainer = Trainer(nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1)), rate=1e-6)
for _ in range(60):
    x = torch.randn(64, 8)
    trainer.step(x, x[:, :1] + x[:, 1:2])
