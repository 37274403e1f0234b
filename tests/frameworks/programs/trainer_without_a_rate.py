# The learning rate was left at 0.
# truth: zero-learning-rate error body.weight
import logging
import tempfile

import torch
from torch import nn
from transformers import Trainer, TrainingArguments

logging.disable(logging.WARNING)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 2)

    def forward(self, x, labels):
        return {"loss": nn.functional.cross_entropy(self.body(x), labels)}


torch.manual_seed(0)
rows = [{"x": x, "labels": int(x[0] > x[1])} for x in torch.randn(96, 6)]
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    learning_rate=0.0,
    per_device_train_batch_size=8,
    max_steps=12,
    use_cpu=True,
    report_to=[],
    save_strategy="no",
    disable_tqdm=True,
)
trainer = Trainer(model=Classifier(), args=arguments, train_dataset=rows)
trainer.train()  # zero-learning-rate
