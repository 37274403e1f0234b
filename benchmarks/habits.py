"""What people do today to look at gradients. Each habit puts its hooks in and returns how to check that they worked.

The check is called after a step, with the gradients still there, and raises where a hook did not fire or a number is
wrong: a hook that does nothing is the fastest.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from benchmarks.workloads import Workload

Check = Callable[[], None]
Habit = Callable[[Workload], tuple[Check, Callable[[], None]]]  # (check, what to call after each backward)


def nothing(_workload: Workload) -> tuple[Check, Callable[[], None]]:
    return lambda: None, lambda: None


def lesson_hook(workload: Workload) -> tuple[Check, Callable[[], None]]:
    """`register_hook` on every parameter, two numbers each."""
    seen: dict[str, tuple[float, float]] = {}

    def watch(name: str) -> Callable[[torch.Tensor], None]:
        def hook(gradient: torch.Tensor) -> None:
            seen[name] = gradient.abs().mean().item(), gradient.std().item()

        return hook

    for name, parameter in workload.model.named_parameters():
        parameter.register_hook(watch(name))

    def check() -> None:
        for name, parameter in workload.model.named_parameters():
            assert parameter.grad is not None
            assert math.isclose(seen[name][0], parameter.grad.double().abs().mean().item(), rel_tol=1e-3)

    return check, lambda: None


def module_hooks(workload: Workload) -> tuple[Check, Callable[[], None]]:
    """The same, and a full backward hook on every module."""
    check_parameters, _ = lesson_hook(workload)
    fired: dict[nn.Module, float] = {}

    def hook(module: nn.Module, _inputs: Any, outputs: tuple[torch.Tensor, ...]) -> None:
        fired[module] = outputs[0].abs().mean().item()

    modules = [module for module in workload.model.modules() if not isinstance(module, nn.Embedding)]
    for module in modules:
        module.register_full_backward_hook(hook)

    def check() -> None:
        check_parameters()
        assert len(fired) == len(modules)
        assert all(math.isfinite(number) for number in fired.values())

    return check, lambda: None


def retained(workload: Workload) -> tuple[Check, Callable[[], None]]:
    """`retain_grad()` on every module's output, and two numbers of each."""
    outputs: list[torch.Tensor] = []
    seen: list[tuple[float, float]] = []

    def keep(_module: nn.Module, _inputs: Any, output: torch.Tensor) -> None:
        output.retain_grad()
        outputs.append(output)

    def read() -> None:
        seen[:] = [(o.grad.abs().mean().item(), o.grad.std().item()) for o in outputs if o.grad is not None]
        outputs.clear()

    for module in workload.model.modules():
        module.register_forward_hook(keep)

    def check() -> None:
        assert len(seen) >= sum(not list(module.children()) for module in workload.model.modules())

    return check, read


def anomaly(_workload: Workload) -> tuple[Check, Callable[[], None]]:
    """`torch.autograd.set_detect_anomaly(True)`."""
    torch.autograd.set_detect_anomaly(True)

    def check() -> None:
        assert torch.is_anomaly_enabled()

    return check, lambda: None


def lightning(workload: Workload) -> tuple[Check, Callable[[], None]]:
    """Lightning's `grad_norm`, as its loggers take it."""
    from lightning.pytorch.utilities import grad_norm

    norms: dict[str, float] = {}

    def read() -> None:
        norms.update({name: float(norm) for name, norm in grad_norm(workload.model, 2).items()})

    def check() -> None:
        squares = sum(p.grad.double().square().sum().item() for p in workload.model.parameters() if p.grad is not None)
        assert math.isclose(norms["grad_2.0_norm_total"], math.sqrt(squares), rel_tol=1e-3)

    return check, read


def wandb(workload: Workload) -> tuple[Check, Callable[[], None]]:
    """`wandb.watch(log="all", log_freq=1)`, offline."""
    import wandb as logger

    run = logger.init(mode="offline", dir=".")
    run.watch(workload.model, log="all", log_freq=1)

    def check() -> None:
        assert run.step > 0

    return check, lambda: run.log({})


HABITS: dict[str, Habit] = {
    "the lesson's hook": lesson_hook,
    "and a hook per module": module_hooks,
    "retain_grad, all outputs": retained,
    "detect_anomaly": anomaly,
    "Lightning grad_norm": lightning,
    "wandb.watch": wandb,
}
_NEEDS = {"Lightning grad_norm": "lightning", "wandb.watch": "wandb"}


def is_installed(habit: str) -> bool:
    """Return whether the package that a habit needs is there."""
    return habit not in _NEEDS or importlib.util.find_spec(_NEEDS[habit]) is not None
