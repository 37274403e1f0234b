# A functional net whose weights are a dict of the script's, cut by a detach.
# truth: detached error params.w1
import torch

torch.manual_seed(0)
params = {"w1": torch.randn(4, 8, requires_grad=True), "w2": torch.randn(8, 1, requires_grad=True)}
opt = torch.optim.Adam(params.values(), 1e-2)
for _ in range(6):
    x = torch.randn(16, 4)
    h = (x @ params["w1"]).relu().detach()  # detached
    loss = (h @ params["w2"] - x[:, :1]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
