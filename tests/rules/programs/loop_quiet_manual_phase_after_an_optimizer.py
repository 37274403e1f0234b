# Adam warms the model up; afterwards the weights are updated by hand.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(33)
model = nn.Linear(4, 1)
warm_up = torch.optim.Adam(model.parameters(), lr=1e-2)
for number in range(30):
    x = torch.randn(16, 4)
    model.zero_grad()
    loss = (model(x) - 2 * x[:, :1]).pow(2).mean()
    loss.backward()
    if number < 10:
        warm_up.step()
    else:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.05 * parameter.grad
