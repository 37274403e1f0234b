# Layers in a plain list are in no optimizer.
# truth: unregistered-parameter error layers.0.weight layers.1.weight
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
        self.layers = [nn.Linear(6, 6), nn.Linear(6, 6)]  # unregistered-parameter
        self.head = nn.Linear(6, 1)

    def training_step(self, batch, _index):
        x, y = batch
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return (self.head(x).squeeze(1) - y).pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


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
trainer.fit(Regressor(), batches)
