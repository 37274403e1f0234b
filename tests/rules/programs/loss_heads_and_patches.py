"""Healthy: heads, patches, windows and pixels are split and merged by reshapes that keep the order."""
# truth: quiet

import torch
import torch.nn.functional as F
from torch import nn


class Patches(nn.Module):
    def __init__(self, width=16, heads=4):
        super().__init__()
        self.heads = heads
        self.embed = nn.Linear(2 * 2 * 3, width)
        self.qkv = nn.Linear(width, 3 * width)
        self.decode = nn.Linear(width, 2 * 2 * 3)

    def forward(self, image):
        b, c, h, w = image.shape
        cut = image.view(b, c, h // 2, 2, w // 2, 2).permute(0, 2, 4, 1, 3, 5)
        tokens = self.embed(cut.reshape(b, (h // 2) * (w // 2), -1))
        q, k, v = self.qkv(tokens).view(b, -1, 3, self.heads, 4).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, -1, 16)
        back = self.decode(mixed + tokens).view(b, h // 2, w // 2, c, 2, 2)
        return back.permute(0, 3, 1, 4, 2, 5).reshape(b, c, h, w)


torch.manual_seed(0)
model = Patches()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for _ in range(25):
    image = torch.randn(6, 3, 8, 10)
    loss = F.mse_loss(model(image).view(6, -1), image.view(6, -1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
