# Two optimizers by hand, each with its own parameters switched on.
# truth: quiet
import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class Adversaries(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator = nn.Sequential(nn.Linear(3, 16), nn.LeakyReLU(0.2), nn.Linear(16, 6))
        self.discriminator = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))

    def training_step(self, batch, _index):
        of_generator, of_discriminator = self.optimizers()
        real, fake = batch[0], self.generator(torch.randn(len(batch[0]), 3))

        self.toggle_optimizer(of_discriminator)
        scores = self.discriminator(torch.cat([real, fake.detach()]))
        targets = torch.cat([torch.ones(len(real), 1), torch.zeros(len(fake), 1)])
        of_discriminator.zero_grad()
        self.manual_backward(nn.functional.binary_cross_entropy_with_logits(scores, targets))
        of_discriminator.step()
        self.untoggle_optimizer(of_discriminator)

        self.toggle_optimizer(of_generator)
        of_generator.zero_grad()
        self.manual_backward(nn.functional.softplus(-self.discriminator(self.generator(torch.randn(16, 3)))).mean())
        of_generator.step()
        self.untoggle_optimizer(of_generator)

    def configure_optimizers(self):
        return (
            torch.optim.Adam(self.generator.parameters(), lr=2e-3),
            torch.optim.Adam(self.discriminator.parameters(), lr=2e-3),
        )


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
trainer.fit(Adversaries(), batches)
