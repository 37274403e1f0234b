# A layer that was frozen for an earlier phase and never let go.
# truth: frozen-parameter info encoder.weight encoder.bias
import logging
import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainingArguments

logging.disable(logging.WARNING)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(6, 16)
        self.head = nn.Linear(16, 2)

    def forward(self, x, labels):
        logits = self.head(self.encoder(x).relu())
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


torch.manual_seed(0)
rows = [{"x": x, "labels": int(x[0] > x[1])} for x in torch.randn(96, 6)]
model = Classifier()
model.encoder.requires_grad_(False)  # frozen-parameter
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    per_device_train_batch_size=8,
    max_steps=12,
    use_cpu=True,
    report_to=[],
    save_strategy="no",
    disable_tqdm=True,
)
Trainer(model=model, args=arguments, train_dataset=rows, optimizers=(optimizer, None)).train()
