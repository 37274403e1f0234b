# A dataset scales its images to 0..1, and a transform stores them as bytes again: every image becomes black.
# truth: constant-input error conv.weight head.weight
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def compact(image):
    small = image.clamp(0.0, 0.99)
    return small.to(torch.uint8)  # constant-input


class Shapes(Dataset):
    def __init__(self, count):
        self.images = torch.rand(count, 1, 8, 8)
        self.labels = (self.images.mean(dim=(1, 2, 3)) > 0.5).long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return compact(self.images[index]).float(), self.labels[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(torch.relu(self.conv(x)).amax(dim=(2, 3)))


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(2):
    for image, label in DataLoader(Shapes(80), batch_size=16, shuffle=True):
        loss = nn.functional.cross_entropy(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
