# A soft prompt is registered as a buffer that requires grad: parameters() does not list it.
# truth: unregistered-parameter error prompt
import torch
from torch import nn

torch.manual_seed(0)


class Prompt(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        for p in base.parameters():
            p.requires_grad = False
        self.register_buffer("prompt", torch.zeros(1, 3, 8, requires_grad=True))  # unregistered-parameter
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        x = torch.cat([self.prompt.expand(x.size(0), -1, -1), x], 1)
        return self.head(self.base(x).mean(1))


model = Prompt(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True))
opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
for _ in range(8):
    loss = nn.functional.cross_entropy(model(torch.randn(4, 5, 8)), torch.randint(0, 2, (4,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
