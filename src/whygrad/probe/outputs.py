"""What modules return, and the gradient that comes back to it.

Modules are watched by wrapping `nn.Module._call_impl` while a recorded step runs. Forward hooks would show in the
user's tracebacks: with any hook set, torch runs `forward` through one frame more.

The gradient of an output is read by a prehook on its `grad_fn`. `Tensor.register_hook` can crash torch 2.13 on views of
tensors that were written in place, and full backward hooks turn outputs into views, which breaks in-place activations.
"""

from __future__ import annotations

import dataclasses
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from whygrad.model import Module, Output, Place, Role
from whygrad.probe.guard import Guard
from whygrad.probe.modes import has_modes, is_fresh
from whygrad.probe.modules import ModuleRegistry, NamedModule
from whygrad.probe.pass_kinds import PassKinds
from whygrad.probe.patches import drop_own_frame
from whygrad.probe.source import Site, place_or_none
from whygrad.probe.tracebacks import clean_traceback
from whygrad.probe.variation import deviations
from whygrad.probe.window import Window
from whygrad.stats.kernel import is_supported
from whygrad.stats.rows import Rows

_DEPTH = 4  # structures in structures
_ITEMS = 1024  # of one structure
_VARIED = 5  # windows that are looked at closely: the first ones, and each fifth later, have their samples compared
MAX_RETIRED = 5000


@dataclass(slots=True)
class TrackedModule:
    """A module that was called."""

    id: int
    ref: weakref.ref[nn.Module]
    type: str
    order: int
    calls: int = 0
    training: bool | None = None
    taught: int = 0
    taught_in_eval: int = 0
    name: str | None = None  # None until its root model is known
    root: str = ""
    # What was known when the module was last there: a model that a function builds is gone at the end of the program.
    made_at: Place | None = None
    eval_at: Place | None = None
    has_modes: bool = False
    fresh: bool = False


@dataclass(slots=True)
class TrackedOutput:
    """One tensor that a module returns."""

    id: int
    module: int
    path: str
    order: int
    shape: tuple[int, ...]
    dtype: str
    calls: int = 0
    without_grad: int = 0
    gradient_calls: int = 0
    view_written: bool = False


class OutputRecorder:
    """Watches module calls while switched on."""

    def __init__(self, registry: ModuleRegistry, guard: Guard) -> None:
        self.passes = PassKinds()  # what runs while the hooks on outputs fire
        self.forwards = 0  # calls of root modules with grad enabled
        self.on_forward: Callable[[], None] = lambda: None  # called at each of them; set by the session
        self.on_arguments: Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], None] | None = None
        self.on_output: Callable[[int, nn.Module, torch.Tensor], None] | None = None  # id, who made it, the tensor
        self.on_enter: Callable[[nn.Module], None] | None = None  # called with each module that is entered
        self.on_evaluation: Callable[[nn.Module], None] = lambda _module: None  # called where grad is off; likewise
        self.closely = True  # what is returned is looked at beyond its statistics
        self._registry = registry
        self._guard = guard
        self._count = 0
        self._outputs_count = 0
        self._modules: dict[int, TrackedModule] = {}
        self._all_modules: dict[int, TrackedModule] = {}  # by number
        self._by_line: dict[tuple[str, Site], TrackedModule] = {}  # of modules that no model holds, made at that line
        self._outputs: dict[tuple[int, str], TrackedOutput] = {}
        self._window = Window()
        self._close_windows = 0
        self._local = threading.local()

    @property
    def depth(self) -> int:
        """Return how many module calls this thread is in."""
        return int(getattr(self._local, "depth", 0))

    def wrap(self, original: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function that stands for `nn.Module._call_impl` while outputs are recorded.

        Args:
            original: torch's own function.
            run: Calls it with (original, module, args, kwargs), as the tracer wishes.
        """
        enter = self._guard.wrap("outputs", self._enter)
        record = self._guard.wrap("outputs", self._record)
        evaluate = self._guard.wrap("copies", self._evaluated)
        arguments = None if self.on_arguments is None else self._guard.wrap("feeds", self.on_arguments)
        local, recorder = self._local, self

        def _call_impl(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or torch._C._get_tracing_state():
                return original(self, *args, **kwargs)
            learning = torch.is_grad_enabled() and torch._C._functorch.peek_interpreter_stack() is None
            if learning:
                enter(self)
                if arguments is not None and recorder.closely:
                    arguments(self, args, kwargs)
            elif not getattr(local, "depth", 0):
                evaluate(self)
            local.depth = getattr(local, "depth", 0) + 1
            try:
                result = run(original, self, args, kwargs) if recorder.closely else original(self, *args, **kwargs)
            except BaseException as error:
                drop_own_frame(error)
                clean_traceback(error)
                raise
            finally:
                local.depth -= 1
            if learning:
                record(self, result)
            return result

        return _call_impl

    def _evaluated(self, module: nn.Module) -> None:
        """Take note of a call of a root model without grad; a program may make no others."""
        self.on_evaluation(module)
        self.on_forward()

    def _enter(self, module: nn.Module) -> None:
        entry = self._modules.get(id(module))
        if entry is None or entry.ref() is not module:
            entry = self._modules[id(module)] = self._made_again(module) or self._new(module)
        if self._is_rerun(entry):
            return
        if self.on_enter is not None:
            self.on_enter(module)
        entry.calls += 1
        entry.training = module.training
        if self.depth == 0 and not _in_backward():
            self.on_forward()
            self.forwards += 1
            self._window.roots[entry.id] = module.training
            self._registry.note_call(module)

    def note_backward(self) -> None:
        """Remember the mode of the root models called since the last backward pass; the one before a step counts."""
        self._window.taught |= self._window.roots
        self._window.roots = {}

    def _new(self, module: nn.Module) -> TrackedModule:
        number, self._count = self._count, self._count + 1
        entry = self._all_modules[number] = TrackedModule(number, weakref.ref(module), type(module).__name__, number)
        self._look_at(entry)
        site = self._registry.made_at(module)
        if site is not None:
            self._by_line[entry.type, site] = entry
        return entry

    def _made_again(self, module: nn.Module) -> TrackedModule | None:
        """Return the entry of a module's predecessor: `nn.ReLU()(x)` in a forward makes one each time."""
        site = self._registry.made_at(module)
        entry = self._by_line.get((type(module).__name__, site)) if site is not None else None
        if entry is None or entry.ref() is not None or entry.name is not None:
            return None
        entry.ref = weakref.ref(module)
        return entry

    def retire(self) -> None:
        """Forget the modules that are gone, beyond a limit; what was known of them is in the run file."""
        self._modules = {id(m): entry for entry in self._modules.values() if (m := entry.ref()) is not None}
        if len(self._all_modules) - len(self._modules) <= MAX_RETIRED:
            return
        self._all_modules = {entry.id: entry for entry in self._modules.values()}
        self._by_line = {key: entry for key, entry in self._by_line.items() if entry.id in self._all_modules}
        self._outputs = {key: output for key, output in self._outputs.items() if output.module in self._all_modules}

    def _is_rerun(self, entry: TrackedModule) -> bool:
        """Return whether activation checkpointing runs a forward again that was seen already."""
        return _in_backward() and entry.id in self._window.called

    def _record(self, module: nn.Module, result: Any) -> None:
        entry = self._modules.get(id(module))
        if entry is None or entry.ref() is not module or self._is_rerun(entry):
            return
        self._window.called.add(entry.id)
        for path, tensor in tensors_in(result):
            if tensor.is_floating_point():
                self._measure(entry, path, tensor)

    def _measure(self, module: TrackedModule, path: str, tensor: torch.Tensor) -> None:
        window = self._window
        known = window.measured.get(id(tensor))
        if known is not None and known[0]() is tensor and known[1] == version_of(tensor):
            return  # a container returns what its last child returned
        window.measured[id(tensor)] = (weakref.ref(tensor), version_of(tensor))
        output = self._outputs.get((module.id, path))
        if output is None:
            if not is_supported(tensor):
                return
            output = self._new_output(module, path, tensor)
        if window.outputs.add(output.id, tensor) is None:
            return
        output.calls += 1
        call = window.again.note_call(output.id)
        if self.closely:
            self._look_closely(output.id, module, tensor)
        node = grad_fn_of(tensor)
        if node is None:
            output.without_grad += not tensor.requires_grad
            return
        if tensor._is_view():
            window.views[output.id] = window.views.get(output.id, 0) + 1
        node.register_prehook(self._gradient_hook(output, tensor.output_nr, window, call))

    def _gradient_hook(
        self, output: TrackedOutput, number: int, window: Window, call: int
    ) -> Callable[[tuple[torch.Tensor | None, ...]], None]:
        # The hook lives as long as the graph: it must hold no tensor.
        def measure(gradients: tuple[torch.Tensor | None, ...]) -> None:
            gradient = gradients[number]
            if gradient is None or window is not self._window or self.passes.aside:
                return
            row = window.gradients.add(output.id, gradient)
            if row is None:
                return
            output.gradient_calls += 1
            if output.id in window.views:
                window.views[output.id] -= 1
            window.again.note_gradient(output.id, call, gradient, row)

        guarded = self._guard.wrap("outputs", measure)

        def hook(gradients: tuple[torch.Tensor | None, ...]) -> None:
            guarded(gradients)

        return hook

    def _look_closely(self, output: int, module: TrackedModule, tensor: torch.Tensor) -> None:
        varying = deviations(tensor) if self._close_windows < _VARIED or self._close_windows % _VARIED == 0 else None
        if varying is not None:
            self._window.variations.add(output, varying)
        made_by = module.ref()
        if self.on_output is not None and made_by is not None:
            self._guard.run("activations", self.on_output, output, made_by, tensor)

    def _new_output(self, module: TrackedModule, path: str, tensor: torch.Tensor) -> TrackedOutput:
        number, self._outputs_count = self._outputs_count, self._outputs_count + 1
        dtype = str(tensor.dtype).removeprefix("torch.")
        output = TrackedOutput(number, module.id, path, number, tuple(tensor.shape), dtype)
        self._outputs[module.id, path] = output
        return output

    def release(self, tensor: torch.Tensor) -> None:
        """Drop the weak reference to a tensor: `torch.utils.swap_tensors` refuses tensors that have one."""
        self._window.measured.pop(id(tensor), None)

    def close_window(self) -> dict[Role, Rows]:
        """End the current step's window and return what was measured in it."""
        if not self._window.is_used():
            return {}
        window, self._window = self._window, Window(len(self._window.outputs))
        self._close_windows += self.closely
        for number, training in window.taught.items():
            self._all_modules[number].taught += 1
            self._all_modules[number].taught_in_eval += not training
        if window.views:
            for output in self._outputs.values():
                output.view_written |= window.views.get(output.id, 0) > 0
        return window.rows()

    def name(self, tree: list[NamedModule]) -> None:
        """Take the qualified names of the called modules from the tree of all models."""
        for named in tree:
            entry = self._modules.get(id(named.module))
            if entry is not None and entry.ref() is named.module and entry.name is None:
                entry.name, entry.root = named.name, named.label

    def types(self) -> Iterator[tuple[str, type[nn.Module]]]:
        """Yield (name, class) of every module that was called and still exists."""
        for entry in self._all_modules.values():
            module = entry.ref()
            if module is not None:
                yield entry.name or entry.type, type(module)

    def number_of(self, module: nn.Module) -> int | None:
        """Return the id of a module that was called; None for any other."""
        entry = self._modules.get(id(module))
        return entry.id if entry is not None and entry.ref() is module else None

    def note_sequence(self, output: int, time: int) -> None:
        """Note that an output enters a recurrent layer, and along which dimension its time runs."""
        self._window.again.sequences[output] = time

    def order_of(self, module: nn.Module | None) -> int | None:
        """Return the position of a module's first call; None if it was never called."""
        entry = self._modules.get(id(module)) if module is not None else None
        return entry.order if entry is not None and entry.ref() is module else None

    def module_facts(self) -> Iterator[Module]:
        """Yield the facts about every module that was called."""
        for entry in self._all_modules.values():
            self._look_at(entry)
            name = entry.type if entry.name is None else entry.name
            yield Module(
                id=entry.id,
                name=name,
                root=entry.root,
                type=entry.type,
                made_at=entry.made_at,
                order=entry.order,
                calls=entry.calls,
                training=entry.training,
                taught=entry.taught,
                taught_in_eval=entry.taught_in_eval,
                eval_at=entry.eval_at,
                has_modes=entry.has_modes,
                fresh=entry.fresh,
            )

    def _look_at(self, entry: TrackedModule) -> None:
        module = entry.ref()
        if module is not None:
            seen = self._registry.note(module)
            entry.made_at, entry.eval_at = place_or_none(seen.made_at), place_or_none(seen.eval_at)
            entry.has_modes, entry.fresh = has_modes(module), is_fresh(module)

    def output_facts(self, prefixed: Callable[[str], bool]) -> Iterator[Output]:
        """Yield the facts about every output; `prefixed` tells whether names of a root are led by the root's."""
        for output in self._outputs.values():
            module = self._all_modules[output.module]
            lead = module.root if module.root and prefixed(module.root) else ""
            name = ".".join(filter(None, (lead, module.type if module.name is None else module.name)))
            yield Output(
                id=output.id,
                name=(name or module.type) + output.path,
                module=output.module,
                order=output.order,
                shape=output.shape,
                dtype=output.dtype,
                calls=output.calls,
                without_grad=output.without_grad,
                gradient_calls=output.gradient_calls,
                view_written=output.view_written,
            )


def tensors_in(value: Any, path: str = "", depth: int = _DEPTH) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield (path, tensor) of every tensor in what a module returned: tuples, dicts, dataclasses, model outputs."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif depth == 0:
        return
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value[:_ITEMS]):
            yield from tensors_in(item, f"{path}[{index}]", depth - 1)
    elif isinstance(value, dict):
        for key, item in list(dict.items(value))[:_ITEMS]:  # not the program's own `items`
            yield from tensors_in(item, f"{path}[{key!r}]", depth - 1)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for name in value.__dataclass_fields__:
            yield from tensors_in(getattr(value, name, None), f"{path}.{name}", depth - 1)


def grad_fn_of(tensor: torch.Tensor) -> torch.autograd.graph.Node | None:
    """Return a tensor's `grad_fn`; None where autograd refuses to look (a view whose base was overwritten)."""
    try:
        return tensor.grad_fn
    except RuntimeError:
        return None


def version_of(tensor: torch.Tensor) -> int:
    """Return the in-place version of a tensor; -1 for inference tensors, which keep none."""
    return -1 if tensor.is_inference() else tensor._version


def _in_backward() -> bool:
    return torch._C._current_graph_task_id() != -1
