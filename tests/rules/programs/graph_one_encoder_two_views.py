# Both views go through one encoder, one of them behind a stop-gradient; sorting serves the log alone.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(31)
encoder = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 6))
predict = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 6))
model = nn.ModuleDict({"encoder": encoder, "predict": predict})
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(15):
    x = torch.randn(32, 6)
    a, b = encoder(x + 0.1 * torch.randn_like(x)), encoder(x + 0.1 * torch.randn_like(x))
    loss = -nn.functional.cosine_similarity(predict(a), b.detach(), dim=1).mean()
    ranks = a.detach().sort(dim=0).indices[0].tolist()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
