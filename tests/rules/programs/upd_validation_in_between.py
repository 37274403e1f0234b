# train() is called once; from the first validation on the model stays in eval mode.
# truth: eval-mode warning features.0.weight classifier.weight
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3))
        self.classifier = nn.Linear(16, 3)

    def forward(self, x):
        return self.classifier(self.features(x))


def accuracy(model, x):
    model.eval()  # eval-mode
    with torch.no_grad():
        return (model(x).argmax(1) == x[:, :3].argmax(1)).float().mean().item()


torch.manual_seed(18)
model = Net().train()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    for _ in range(5):
        x = torch.randn(32, 6)
        loss = nn.functional.cross_entropy(model(x), x[:, :3].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    accuracy(model, torch.randn(64, 6))
