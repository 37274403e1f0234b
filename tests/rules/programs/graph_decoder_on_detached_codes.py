# Encoder and decoder have an optimizer each; the code was detached to save memory.
# truth: detached error
import torch
from torch import nn

torch.manual_seed(37)
encoder, decoder = nn.Linear(6, 3), nn.Linear(3, 6)
of_encoder = torch.optim.Adam(encoder.parameters(), lr=1e-2)
of_decoder = torch.optim.Adam(decoder.parameters(), lr=1e-2)
for _ in range(12):
    x = torch.randn(32, 6)
    code = torch.tanh(encoder(x)).detach()  # detached
    loss = (decoder(code) - x).pow(2).mean()
    of_encoder.zero_grad()
    of_decoder.zero_grad()
    loss.backward()
    of_decoder.step()
    of_encoder.step()
