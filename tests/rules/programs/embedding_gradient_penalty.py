# An attack on word vectors reads the gradient of the looked-up vectors, which are the output of an operation.
# truth: intermediate-grad error vectors
import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 6)
        self.score = nn.Linear(6, 1)

    def forward(self, vectors):
        return self.score(vectors.mean(1)).squeeze(1)


def worst_direction(vectors):
    if vectors.grad is None:  # intermediate-grad
        return torch.zeros_like(vectors)
    return vectors.grad.sign()


torch.manual_seed(8)
reader = Reader()
optimizer = torch.optim.SGD(reader.parameters(), lr=0.1)
for _ in range(12):
    tokens = torch.randint(0, 20, (10, 4))
    labels = (tokens < 5).any(1).float()
    vectors = reader.words(tokens)
    optimizer.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(reader(vectors), labels).backward()
    shifted = vectors.detach() + 0.01 * worst_direction(vectors)
    nn.functional.binary_cross_entropy_with_logits(reader(shifted), labels).backward()
    optimizer.step()
