# An unchanged LightningModule: backward runs inside the optimizer's step, as a closure.
# truth: quiet
import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class Regressor(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.ReLU())
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(1)

    def training_step(self, batch, _index):
        x, y = batch
        loss = (self(x) - y).pow(2).mean()
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, _index):
        x, y = batch
        self.log("validation", (self(x) - y).abs().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-2)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 2)]


torch.manual_seed(0)
x = torch.randn(192, 6)
batches = DataLoader(TensorDataset(x, x[:, 0] - x[:, 1]), batch_size=16, shuffle=True)
trainer = L.Trainer(
    max_epochs=2,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    gradient_clip_val=1.0,
    accumulate_grad_batches=2,
)
trainer.fit(Regressor(), batches, batches)
