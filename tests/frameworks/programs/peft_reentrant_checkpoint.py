# Reentrant checkpointing of blocks whose input does not require grad: the base in front of them is frozen.
# truth: reentrant-checkpoint error base_model.model.blocks.0.lora_A.default.weight
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from torch.utils.checkpoint import checkpoint


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(6, 16)
        self.blocks = nn.ModuleList(nn.Linear(16, 16) for _ in range(2))
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        h = self.embed(x)
        for block in self.blocks:
            h = torch.relu(checkpoint(block, h, use_reentrant=True))  # reentrant-checkpoint
        return self.head(h).squeeze(1)


torch.manual_seed(0)
model = get_peft_model(Tower(), LoraConfig(r=4, target_modules=["0", "1", "head"]))
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-2)

for _step in range(12):
    x = torch.randn(16, 6)
    loss = (model(x) - x[:, 0]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
