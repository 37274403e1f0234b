"""What people do today to look at gradients. Each habit puts its hooks in and returns how to make and check a step.

The check is called after a backward, with the gradients still there, and raises where a hook did not fire or a number
is wrong: a hook that does nothing is the fastest.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from benchmarks.workloads import Workload

Check = Callable[[torch.Tensor], None]  # takes the model's output


@dataclass(frozen=True, slots=True)
class Installed:
    """A habit at work."""

    backward: Callable[[], torch.Tensor]  # from the inputs to the gradients, looking at them; the model's output
    check: Check


Habit = Callable[[Workload], Installed]


def nothing(workload: Workload) -> Installed:
    """Look at nothing: the plain loop."""
    return Installed(_backward(workload), lambda _output: None)


def lesson_hook(workload: Workload) -> Installed:
    """`register_hook` on every parameter, two numbers each."""
    return Installed(_backward(workload), _hook_parameters(workload))


def module_hooks(workload: Workload) -> Installed:
    """The same, and a full backward hook on every module."""
    check_parameters = _hook_parameters(workload)
    seen: dict[nn.Module, tuple[float, float]] = {}

    def hook(module: nn.Module, _inputs: Any, outputs: tuple[torch.Tensor, ...]) -> None:
        seen[module] = _two_numbers(outputs[0])

    modules = [module for module in workload.model.modules() if not isinstance(module, nn.Embedding)]
    for module in modules:
        module.register_full_backward_hook(hook)

    def check(output: torch.Tensor) -> None:
        check_parameters(output)
        assert len(seen) == len(modules)
        _check_output(workload, output, seen[workload.model])

    return Installed(_backward(workload), check)


def retained(workload: Workload) -> Installed:
    """`retain_grad()` on every module's output, and two numbers of each."""
    outputs: list[torch.Tensor] = []
    seen: list[tuple[float, float]] = []

    def keep(_module: nn.Module, _inputs: Any, output: torch.Tensor) -> None:
        output.retain_grad()
        outputs.append(output)

    def read() -> None:
        seen[:] = [_two_numbers(output.grad) for output in outputs if output.grad is not None]
        outputs.clear()

    for module in workload.model.modules():
        module.register_forward_hook(keep)

    def check(output: torch.Tensor) -> None:
        assert len(seen) >= sum(1 for _ in workload.model.modules())
        _check_output(workload, output, seen[-1])  # the root returns last

    return Installed(_backward(workload, read), check)


def anomaly(workload: Workload) -> Installed:
    """`torch.autograd.set_detect_anomaly(True)`."""
    torch.autograd.set_detect_anomaly(True)

    def check(output: torch.Tensor) -> None:
        assert output.grad_fn is not None
        metadata: Any = output.grad_fn.metadata
        assert "traceback_" in metadata  # what the mode keeps of each operation

    return Installed(_backward(workload), check)


def lightning(workload: Workload) -> Installed:
    """Lightning's `grad_norm`, as its loggers take it."""
    from lightning.pytorch.utilities import grad_norm

    norms: dict[str, float] = {}

    def read() -> None:
        norms.update({name: float(norm) for name, norm in grad_norm(workload.model, 2).items()})

    def check(_output: torch.Tensor) -> None:
        squares = sum(gradient.double().square().sum().item() for _, gradient in _gradients(workload))
        assert math.isclose(norms["grad_2.0_norm_total"], math.sqrt(squares), rel_tol=1e-3)

    return Installed(_backward(workload, read), check)


def wandb(workload: Workload) -> Installed:
    """`wandb.watch(log="all", log_freq=1)`, offline. The time of the process that it starts does not count."""
    import wandb as logger

    run: Any = logger.init(mode="offline", dir=".")
    run.watch(workload.model, log="all", log_freq=1)

    def check(_output: torch.Tensor) -> None:
        deadline = time.monotonic() + 60  # it is another process that answers
        while run.summary.get(f"gradients/{next(_gradients(workload))[0]}") is None:
            assert time.monotonic() < deadline, "nothing was logged"
        for name, gradient in _gradients(workload):
            logged = run.summary[f"gradients/{name}"]
            assert sum(logged["values"]) == gradient.numel()
            for edge, expected in ((logged["bins"][0], gradient.min()), (logged["bins"][-1], gradient.max())):
                assert math.isclose(edge, expected.item(), rel_tol=1e-2, abs_tol=1e-6)

    return Installed(_backward(workload, lambda: run.log({})), check)


def torchlens(workload: Workload) -> Installed:
    """A trace with all gradients of every step."""
    import torchlens as lens
    from torchlens.options import CaptureOptions

    capture = CaptureOptions(save_grads=True, backward_ready=True)
    last: list[Any] = []

    def backward() -> torch.Tensor:
        trace = lens.trace(workload.model, workload.inputs, capture=capture)
        output: torch.Tensor = trace[trace.output_layers[0]].out
        trace.log_backward(workload.loss(output, workload.targets))
        last[:] = [trace]
        return output

    def check(output: torch.Tensor) -> None:
        trace = last[0]
        assert trace.num_saved_grad_layers >= sum(1 for _ in workload.model.modules())
        _check_output(workload, output, _two_numbers(trace[trace.output_layers[0]].grad))

    return Installed(backward, check)


HABITS: dict[str, Habit] = {
    "the lesson's hook": lesson_hook,
    "and a hook per module": module_hooks,
    "retain_grad, all outputs": retained,
    "detect_anomaly": anomaly,
    "Lightning grad_norm": lightning,
    "wandb.watch": wandb,
    "torchlens": torchlens,
}
_NEEDS = {"Lightning grad_norm": "lightning", "wandb.watch": "wandb", "torchlens": "torchlens"}


def is_installed(habit: str) -> bool:
    """Return whether the package that a habit needs is there."""
    return habit not in _NEEDS or importlib.util.find_spec(_NEEDS[habit]) is not None


def _backward(workload: Workload, read: Callable[[], object] = lambda: None) -> Callable[[], torch.Tensor]:
    """Return the forward and backward of the plain loop, and what reads the gradients after it."""

    def backward() -> torch.Tensor:
        output: torch.Tensor = workload.model(workload.inputs)
        torch.autograd.backward(workload.loss(output, workload.targets))
        read()
        return output

    return backward


def _hook_parameters(workload: Workload) -> Check:
    seen: dict[str, tuple[float, float]] = {}

    def watch(name: str) -> Callable[[torch.Tensor], None]:
        def hook(gradient: torch.Tensor) -> None:
            seen[name] = _two_numbers(gradient)

        return hook

    for name, parameter in workload.model.named_parameters():
        hooked: Any = parameter
        hooked.register_hook(watch(name))

    def check(_output: torch.Tensor) -> None:
        for name, gradient in _gradients(workload):
            _check_numbers(seen[name], gradient)

    return check


def _gradients(workload: Workload) -> Iterator[tuple[str, torch.Tensor]]:
    for name, parameter in workload.model.named_parameters():
        assert parameter.grad is not None, name
        yield name, parameter.grad


def _two_numbers(gradient: torch.Tensor) -> tuple[float, float]:
    """Return what the lesson looks at."""
    return gradient.abs().mean().item(), gradient.std().item()


def _check_output(workload: Workload, output: torch.Tensor, found: tuple[float, float]) -> None:
    """Check two numbers of the gradient of the model's output against autograd's own answer."""
    fresh = output.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(workload.loss(fresh, workload.targets), fresh)
    _check_numbers(found, gradient)


def _check_numbers(found: tuple[float, float], gradient: torch.Tensor) -> None:
    exact = gradient.double()
    assert math.isclose(found[0], exact.abs().mean().item(), rel_tol=1e-3, abs_tol=1e-12)
    assert math.isclose(found[1], exact.std().item(), rel_tol=1e-3, abs_tol=1e-12)
