# A method puts in a new head after the optimizer was made, before the model was ever called.
# truth: stale-optimizer error classifier.weight classifier.bias
import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(6, 8), nn.ReLU())
        self.classifier = nn.Linear(8, n)

    def forward(self, x):
        return self.classifier(self.features(x))

    def reset_classifier(self, n):
        self.classifier = nn.Linear(8, n)


model = Net(10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # stale-optimizer
model.reset_classifier(4)
for _ in range(6):
    loss = nn.functional.cross_entropy(model(torch.randn(8, 6)), torch.randint(0, 4, (8,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
