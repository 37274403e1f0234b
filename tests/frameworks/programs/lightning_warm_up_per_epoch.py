# A warm-up that counts steps, stepped once per epoch.
# truth: zero-learning-rate error body.weight
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
        self.body = nn.Linear(6, 1)

    def training_step(self, batch, _index):
        x, y = batch
        return (self.body(x).squeeze(1) - y).pow(2).mean()

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)
        warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, (step - 4) / 10))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": warm_up, "interval": "epoch"}}


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
)
trainer.fit(Regressor(), batches)  # zero-learning-rate
