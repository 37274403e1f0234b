"""Run a small program under the tracer, as a session would, and ask about its tensors."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from whygrad.probe.dataflow import Dataflow, PathEnd
from whygrad.probe.guard import Guard
from whygrad.probe.journal import Journal
from whygrad.probe.patches import Patches, drop_own_frame
from whygrad.probe.source import UserCode


class _ProgramCode(UserCode):
    """Everything but this file, which stands for the session."""

    def owns(self, code: CodeType) -> bool:
        return code.co_filename != __file__ and super().owns(code)


class Trace:
    """A tracer with what an installation puts around it."""

    def __init__(self, script: str = "") -> None:
        self.guard = Guard()
        self.depth = 0
        self.reads: list[Any] = []
        self.freezes: list[Any] = []
        self.flow = Dataflow(
            _ProgramCode(script),
            self.guard,
            Journal(),
            in_module=lambda: self.depth > 0,
            on_intermediate_grad_read=lambda tensor, site: self.reads.append((tuple(tensor.shape), site)),
            on_freeze=lambda tensor, site: self.freezes.append((tuple(tensor.shape), site)),
        )

    def explain(self, tensor: torch.Tensor) -> PathEnd:
        """Return the tracer's answer; an error inside it fails the test."""
        answer = self.flow.explain(tensor)
        assert not self.guard.failures
        return answer

    @contextmanager
    def on(self) -> Iterator[Trace]:
        """Watch the body."""
        patches = Patches()
        self.flow.patches(patches)
        self._watch_backward(patches)
        self._watch_modules(patches)
        handles = [
            register_optimizer_step_pre_hook(lambda *_: self._pause(on=True)),
            register_optimizer_step_post_hook(lambda *_: self._pause(on=False)),
        ]
        self.flow.switch_on()
        try:
            yield self
        finally:
            for handle in handles:
                handle.remove()
            patches.undo()

    def _pause(self, *, on: bool) -> None:
        self.flow.paused = on

    def _watch_backward(self, patches: Patches) -> None:
        def listed(tensors: Any) -> list[torch.Tensor]:
            return [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)

        def before_backward(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            inputs = kwargs.get("inputs") or (args[5] if len(args) > 5 else None)
            tensors = args[0] if args else kwargs["tensors"]
            self.flow.note_backward(listed(tensors), None if inputs is None else listed(inputs))

        def before_grad(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            outputs = args[0] if args else kwargs["outputs"]
            inputs = args[1] if len(args) > 1 else kwargs["inputs"]
            self.flow.note_backward(listed(outputs), listed(inputs), returns=True)

        patches.observe(torch.autograd, "backward", before_backward)
        patches.observe(torch.autograd, "grad", before_grad)

    def _watch_modules(self, patches: Patches) -> None:
        original = nn.Module._call_impl

        def _call_impl(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            self.depth += 1
            try:
                return self.flow.run(original, module, args, kwargs)
            except BaseException as error:
                drop_own_frame(error)
                raise
            finally:
                self.depth -= 1

        patches.replace(nn.Module, "_call_impl", _call_impl)


def program(text: str, path: Path) -> CodeType:
    """Return the code of a program's text, which is written to a file: its lines are read."""
    source = textwrap.dedent(text).strip() + "\n"
    path.write_text(source)
    return compile(source, str(path), "exec")


def marked(path: Path, mark: str) -> set[int]:
    """Return the lines of a file that end in a comment with a mark."""
    lines = path.read_text().splitlines()
    return {n for n, line in enumerate(lines, 1) if mark in line.rpartition("#")[2].split()}
