# An average over the valid pixels of each image, in a closure; one image has none.
# truth: nonfinite-gradient error 0.weight
import torch
from torch import nn


def masked_mean(errors, valid):
    total = (errors * valid).flatten(1).sum(dim=1)
    return (total / valid.flatten(1).sum(dim=1)).mean()  # nonfinite-gradient


torch.manual_seed(13)
model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
for step in range(20):
    image = torch.rand(4, 1, 6, 6)
    valid = (torch.rand(4, 1, 6, 6) < 0.5).float()
    if step == 11:
        valid[1] = 0.0

    def closure(image=image, valid=valid):
        optimizer.zero_grad()
        loss = masked_mean((model(image) - image.sqrt()).abs(), valid)
        loss.backward()
        return loss

    optimizer.step(closure)
