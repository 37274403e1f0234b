# An adapter joins the model when the optimizer exists already, and is used from then on.
# truth: not-in-optimizer error adapter.weight adapter.bias
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(6, 10)
        self.out = nn.Linear(10, 4)
        self.adapter = None

    def forward(self, x):
        h = torch.tanh(self.stem(x))
        if self.adapter is not None:
            h = h + self.adapter(h)
        return self.out(h)


def main():
    torch.manual_seed(2)
    tagger = Tagger()
    trainer = torch.optim.SGD(tagger.parameters(), lr=0.05)  # not-in-optimizer
    tagger.adapter = nn.Linear(10, 10)
    for _ in range(25):
        x = torch.randn(20, 6)
        loss = nn.functional.cross_entropy(tagger(x), x[:, :4].argmax(1))
        trainer.zero_grad()
        loss.backward()
        trainer.step()


main()
