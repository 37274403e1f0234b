"""The five programs that are timed, with fixed seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import nn

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Workload:
    """A model, what it learns from, and how."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    inputs: torch.Tensor
    targets: torch.Tensor
    loss: Loss


class Block(nn.Module):
    """A residual block of two convolutions."""

    def __init__(self, narrow: int, wide: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(narrow, wide, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(wide)
        self.conv2 = nn.Conv2d(wide, wide, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(wide)
        self.act = nn.ReLU()
        same = stride == 1 and narrow == wide
        shortcut = nn.Sequential(nn.Conv2d(narrow, wide, 1, stride, bias=False), nn.BatchNorm2d(wide))
        self.shortcut = nn.Identity() if same else shortcut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.norm2(self.conv2(self.act(self.norm1(self.conv1(x)))))
        found: torch.Tensor = self.act(inner + self.shortcut(x))
        return found


class ResNet(nn.Module):
    """ResNet-18 for small images."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        stages = zip(widths, widths[1:], (1, 2, 2, 2), strict=False)
        self.blocks = nn.Sequential(*(b for a, w, s in stages for b in (Block(a, w, s), Block(w, w, 1))))
        self.head = nn.Linear(8 * width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.blocks(self.stem(x)).mean((2, 3)))
        return scores


class DecoderLayer(nn.Module):
    """Causal attention and a feed-forward network, both behind a norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.act, self.down = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        heads = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = heads
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.proj(attended.transpose(1, 2).reshape(batch, length, width))
        found: torch.Tensor = x + self.down(self.act(self.up(self.norm2(x))))
        return found


class Decoder(nn.Module):
    """A small language model."""

    def __init__(self, words: int, width: int, layers: int, length: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.layers = nn.Sequential(*(DecoderLayer(width, 6) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        scores: torch.Tensor = self.head(self.norm(self.layers(x)))
        return scores


def mlp() -> Workload:
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    data = torch.randn(128, 784), torch.randint(0, 10, (128,))
    return Workload(model, _sgd(model), *data, nn.CrossEntropyLoss())


def cnn() -> Workload:
    model = ResNet(64)
    return Workload(model, _sgd(model), torch.randn(32, 3, 32, 32), torch.randint(0, 10, (32,)), nn.CrossEntropyLoss())


def decoder() -> Workload:
    model = Decoder(256, 384, 6, 128)
    data = torch.randint(0, 256, (8, 128)), torch.randint(0, 256, (8, 128))
    return Workload(model, torch.optim.AdamW(model.parameters(), 1e-4), *data, _token_loss)


def tiny() -> Workload:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    return Workload(model, _sgd(model), torch.randn(16, 4), torch.randint(0, 2, (16,)), nn.CrossEntropyLoss())


def wide() -> Workload:
    layers = [nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096)]
    model = nn.Sequential(*layers)
    return Workload(model, _sgd(model, 1e-4), torch.randn(8, 4096), torch.randn(8, 4096), nn.MSELoss())


def _sgd(model: nn.Module, rate: float = 1e-3) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), rate, momentum=0.9)


def _token_loss(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(scores.flatten(0, 1), targets.flatten())


WORKLOADS: dict[str, Callable[[], Workload]] = {
    "MLP 784-512-512-10": mlp,
    "ResNet-18, 32x32": cnn,
    "decoder, 6 layers": decoder,
    "tiny MLP 4-8-2": tiny,
    "wide 4096x4096": wide,
}


def make(name: str, batches: int = 1) -> Workload:
    """Return a workload, the same one each time.

    Args:
        name: A key of `WORKLOADS`.
        batches: How often the batch is repeated, for a larger one.
    """
    torch.manual_seed(0)
    workload = WORKLOADS[name]()
    inputs, targets = (torch.cat([each] * batches) for each in (workload.inputs, workload.targets))
    return replace(workload, inputs=inputs, targets=targets)
