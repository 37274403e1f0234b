# A bfloat16 model and float32 weights that the optimizer holds, copied into the model after each step.
# truth: quiet
import torch
from torch import nn

torch.manual_seed(34)
model = nn.Sequential(nn.Linear(8, 24), nn.LayerNorm(24), nn.ReLU(), nn.Linear(24, 1)).to(torch.bfloat16)
masters = [nn.Parameter(p.detach().float().clone()) for p in model.parameters()]
optimizer = torch.optim.AdamW(masters, lr=1e-3)
for _ in range(40):
    x = torch.randn(64, 8)
    loss = nn.functional.mse_loss(model(x.bfloat16()).float(), x[:, :1])
    loss.backward()
    for p, master in zip(model.parameters(), masters, strict=True):
        master.grad, p.grad = p.grad.float(), None
    optimizer.step()
    with torch.no_grad():
        for p, master in zip(model.parameters(), masters, strict=True):
            p.copy_(master)
