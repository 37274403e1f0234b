# Pixels from 0 to 255 meet a BatchNorm behind the first convolution; a second net takes 0..1 without any scaling.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(0)
templates = torch.rand(3, 1, 8, 8)


def images(count, scale):
    label = torch.randint(0, 3, (count,))
    return scale * (templates[label] + 0.2 * torch.rand(count, 1, 8, 8)).clamp(0, 1), label


for scale, norm in ((255.0, nn.BatchNorm2d(8)), (1.0, nn.Identity())):
    model = nn.Sequential(nn.Conv2d(1, 8, 3), norm, nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(30):
        image, label = images(32, scale)
        loss = nn.functional.cross_entropy(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
