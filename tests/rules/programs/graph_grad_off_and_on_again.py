# Grad mode is switched off by hand around the encoder and on again after it.
# truth: no-grad-region error encoder.weight_ih_l0
import torch
from torch import nn

torch.manual_seed(0)


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder, self.out = (
            nn.GRU(3, 8, batch_first=True),
            nn.GRU(3, 8, batch_first=True),
            nn.Linear(8, 3),
        )

    def encode(self, x):
        prev = torch.is_grad_enabled()
        torch.set_grad_enabled(False)  # no-grad-region
        _, h = self.encoder(x)
        torch.set_grad_enabled(prev)
        return h

    def forward(self, x, y):
        o, _ = self.decoder(y, self.encode(x))
        return self.out(o)


m = Seq2Seq()
opt = torch.optim.Adam(m.parameters(), 1e-2)
for _ in range(6):
    x = torch.randn(4, 6, 3)
    loss = (m(x, x.roll(1, 1)) - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
