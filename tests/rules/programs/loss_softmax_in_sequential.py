"""An image classifier of layers in sequence, the last of them a softmax, trained by a helper."""
# truth: double-softmax warning features.0.weight head.1.weight

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.head = nn.Sequential(
            nn.Flatten(),
            nn.Linear(24, 4),
            nn.Softmax(dim=1),  # double-softmax
        )

    def forward(self, image):
        return self.head(self.features(image))


def epoch(model, criterion, optimizer, images, labels):
    for image, label in zip(images.split(16), labels.split(16), strict=True):
        optimizer.zero_grad()
        criterion(model(image), label).backward()
        optimizer.step()


torch.manual_seed(0)
labels = torch.randint(0, 4, (96,))
images = torch.randn(96, 1, 8, 8) + labels.view(-1, 1, 1, 1)
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(4):
    epoch(model, nn.CrossEntropyLoss(label_smoothing=0.05), optimizer, images, labels)
