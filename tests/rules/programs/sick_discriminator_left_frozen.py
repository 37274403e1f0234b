# A discriminator is frozen for the generator's step and never released; the fakes are not detached, so nothing raises.
# truth: frozen-parameter error judge.0.weight judge.2.weight
import torch
from torch import nn

torch.manual_seed(0)
artist = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
judge = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(), nn.Linear(8, 1))
for_artist = torch.optim.Adam(artist.parameters(), lr=1e-3)
for_judge = torch.optim.Adam(judge.parameters(), lr=1e-3)
verdict = nn.BCEWithLogitsLoss()
for _ in range(60):
    fakes = artist(torch.randn(16, 3))
    told_apart = verdict(judge(torch.randn(16, 2) + 1), torch.ones(16, 1)) + verdict(judge(fakes), torch.zeros(16, 1))
    for_judge.zero_grad()
    told_apart.backward(retain_graph=True)
    for_judge.step()
    for weight in judge.parameters():
        weight.requires_grad_(False)  # frozen-parameter
    for_artist.zero_grad()
    verdict(judge(fakes), torch.ones(16, 1)).backward()
    for_artist.step()
