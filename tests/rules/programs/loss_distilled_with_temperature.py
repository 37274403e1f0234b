"""Healthy: a student learns from a teacher's softened probabilities; its attention has a softmax as well."""
# truth: quiet

import torch
import torch.nn.functional as F
from torch import nn


class Student(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(5, width) for _ in range(3))
        self.out = nn.Linear(width, 4)

    def forward(self, tokens):
        scores = self.query(tokens) @ self.key(tokens).transpose(1, 2) / 3.0
        return self.out((scores.softmax(dim=-1) @ self.value(tokens)).mean(dim=1))


torch.manual_seed(0)
teacher, student, temperature = Student(16), Student(8), 3.0
teacher.requires_grad_(requires_grad=False)
optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
for _ in range(30):
    tokens = torch.randn(32, 6, 5)
    with torch.no_grad():
        soft = F.softmax(teacher(tokens) / temperature, dim=-1)
    logits = student(tokens)
    distance = F.kl_div(F.log_softmax(logits / temperature, dim=-1), soft, reduction="batchmean")
    loss = temperature**2 * distance + 0.5 * F.cross_entropy(logits, soft)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
