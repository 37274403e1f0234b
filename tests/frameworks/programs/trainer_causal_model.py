# transformers' Trainer on a small causal model with tied embeddings.
# truth: quiet
import logging
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

logging.disable(logging.WARNING)
torch.manual_seed(0)
tokens = (torch.arange(12) + torch.randint(0, 20, (96, 1))) % 20
rows = [{"input_ids": row, "labels": row} for row in tokens]
model = GPT2LMHeadModel(GPT2Config(vocab_size=20, n_positions=12, n_embd=16, n_layer=2, n_head=2))
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    per_device_train_batch_size=8,
    gradient_accumulation_steps=2,
    max_steps=12,
    warmup_steps=2,
    learning_rate=5e-3,
    use_cpu=True,
    report_to=[],
    save_strategy="no",
    disable_tqdm=True,
)
Trainer(model=model, args=arguments, train_dataset=rows).train()
