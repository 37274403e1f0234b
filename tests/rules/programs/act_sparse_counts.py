# Word counts, nearly all of them zero, some in the twenties, and a hundred classes of which most never occur.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(0)
topics = torch.distributions.Dirichlet(torch.full((60,), 0.05)).sample((4,))
model = nn.Sequential(nn.Linear(60, 32), nn.ReLU(), nn.Linear(32, 100))
nn.init.zeros_(model[2].weight)
nn.init.zeros_(model[2].bias)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(40):
    topic = torch.randint(0, 4, (48,))
    counts = torch.distributions.Multinomial(30, probs=topics[topic]).sample()
    loss = nn.functional.cross_entropy(model(counts), topic)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
