# A recurrent net with a large learning rate, nearly every batch of which is clipped: it learns.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(23)
rnn, out = nn.GRU(1, 16, batch_first=True), nn.Linear(16, 1)
parameters = [*rnn.parameters(), *out.parameters()]
optimizer = torch.optim.SGD(parameters, lr=0.5)
for _ in range(40):
    x = torch.randn(16, 12, 1)
    optimizer.zero_grad()
    loss = (out(rnn(x)[0]) - 3 * x.cumsum(1)).pow(2).sum(1).mean()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, 0.25)
    optimizer.step()
