# A margin loss made of a ReLU module: after a while every pair keeps its distance and all of it is zero.
# truth: quiet
import torch
from torch import nn


class Margin(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU()

    def forward(self, near, far):
        return self.relu(near - far + 0.5).mean()


torch.manual_seed(15)
embed = nn.Linear(4, 8)
criterion = Margin()
optimizer = torch.optim.Adam(embed.parameters(), lr=0.05)
for _ in range(60):
    anchor = torch.randn(32, 4)
    near = (embed(anchor) - embed(anchor + 0.01 * torch.randn(32, 4))).norm(dim=1)
    far = (embed(anchor) - embed(-anchor)).norm(dim=1)
    loss = criterion(near, far)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
