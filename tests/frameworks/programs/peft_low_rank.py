# PEFT: adapters that start at zero, a frozen base model.
# truth: quiet
import torch
from peft import LoraConfig, get_peft_model
from torch import nn

torch.manual_seed(0)
base = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
model = get_peft_model(base, LoraConfig(r=4, target_modules=["0", "2"], modules_to_save=["4"]))
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-2)

for _step in range(20):
    x = torch.randn(16, 6)
    loss = (model(x).squeeze(1) - x[:, 0]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
