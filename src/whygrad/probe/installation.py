"""Everything the probe puts into the process, in one list; each is taken out again."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.modules import module as module_hooks
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from whygrad.probe import gradient_hooks
from whygrad.probe.clipping import patch_clipping
from whygrad.probe.closures import Arguments, closure_of, with_closure
from whygrad.probe.compiled_hooks import patch_compiled_hooks
from whygrad.probe.iterators import patch_iterators
from whygrad.probe.loop_patches import patch_clears, patch_schedulers
from whygrad.probe.pass_kinds import is_aside
from whygrad.probe.patches import Patches, observed
from whygrad.probe.replicas import patch_replicas
from whygrad.probe.scaling import patch_scaler
from whygrad.probe.source import PACKAGE, Site
from whygrad.probe.tracebacks import clean_traceback

if TYPE_CHECKING:
    from whygrad.probe.session import Session

_NON_LEAF_WARNING = "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"


def install(session: Session) -> Callable[[], None]:
    """Put the probe into the process and return the function that takes it out.

    Raises:
        Exception: A part does not fit this version of torch; what was put in before is out again.
    """
    patches = Patches()
    calls = Patches()
    handles: list[Any] = []

    def watch_calls(on: bool) -> None:
        if on == bool(calls):
            return
        ours = nn.Module._call_impl
        if on:
            calls.replace(nn.Module, "_call_impl", session.outputs.wrap(ours, session.nonfinite.run))
        else:
            calls.undo()
            _mend_dynamo(ours)

    def undo() -> None:
        watch_calls(False)
        for handle in handles:
            handle.remove()
        patches.undo()

    session.watch_calls = watch_calls  # type: ignore[method-assign]
    try:
        for part in _PARTS:
            part(session, patches)
        session.tracer.patches(patches)
        session.rewriting.install(patches)
        session.copies.install(patches)
        gradient_hooks.install(session, patches)
        handles.extend(_global_hooks(session))
    except BaseException:
        undo()
        raise
    return undo


def _mend_dynamo(ours: Any) -> None:
    """Give torch._dynamo the plain `_call_impl`, if it was imported while ours stood there and remembered that."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None and getattr(dynamo, "unpatched_nn_module_call_impl", None) is ours:
        dynamo.unpatched_nn_module_call_impl = nn.Module._call_impl  # type: ignore[attr-defined]


def _here(session: Session, depth: int = 1, *, skip: object = None) -> Site | None:
    return session.user.capture(depth + 1, skip_methods_of=skip)


def _patch_autograd(session: Session, patches: Patches) -> None:
    wrap = session.guard.wrap

    def roots_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[torch.Tensor, ...]:
        return _tensors(args[0] if args else kwargs.get("tensors", kwargs.get("outputs"))) or ()

    def before(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        session.outputs.passes.begin(aside=False)
        session.training.before_backward(roots_of(args, kwargs), _tensors(kwargs.get("inputs")))

    def after(args: tuple[Any, ...], kwargs: dict[str, Any], _result: Any) -> None:
        session.outputs.passes.end()
        session.training.after_backward(_here(session), roots_of(args, kwargs))

    calm = session.calm
    patches.observe(torch.autograd, "backward", wrap("backward", before), wrap("backward", after), calm.passes_backward)

    def is_parameter(tensor: torch.Tensor) -> bool:
        return isinstance(tensor, nn.Parameter) or session.parameters.get(tensor) is not None

    def before_grad(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        asked = _tensors(args[1] if len(args) > 1 else kwargs.get("inputs"))
        session.outputs.passes.begin(aside=is_aside(asked, is_parameter))
        session.tracer.note_backward(roots_of(args, kwargs), asked, returns=True)

    def count_grad_call(args: tuple[Any, ...], kwargs: dict[str, Any], _result: Any) -> None:
        training = session.training
        session.outputs.passes.end()
        training.grad_calls += 1
        if session.replicas:
            asked = args[1] if len(args) > 1 else kwargs.get("inputs")
            session.replicas.note_grad(_tensors(asked) or (), _here(session))
        session.journal.note_pass(roots_of(args, kwargs), _here(session), training.steps, walk=session.tracer.active)

    patches.observe(
        torch.autograd, "grad", wrap("backward", before_grad), wrap("backward", count_grad_call), calm.passes
    )


def _tensors(given: Any) -> tuple[torch.Tensor, ...] | None:
    """Return the tensors of an argument; None for a generator, which looking at would use up."""
    if isinstance(given, torch.Tensor):
        return (given,)
    return tuple(t for t in given if isinstance(t, torch.Tensor)) if isinstance(given, tuple | list) else None


def _patch_optimizers(session: Session, patches: Patches) -> None:
    wrap = session.guard.wrap
    optimizer_class = torch.optim.Optimizer

    def made(args: tuple[Any, ...], _kwargs: Any, _result: Any) -> None:
        session.training.note_optimizer(args[0], _here(session, skip=args[0]))

    patches.observe(optimizer_class, "__init__", after=wrap("optimizers", made))


def _patch_modules(session: Session, patches: Patches) -> None:
    wrap = session.guard.wrap

    def loaded(args: tuple[Any, ...], _kwargs: Any, _result: Any) -> None:
        for parameter in args[0].parameters():
            entry = session.parameters.get(parameter)
            if entry is None:
                session.parameters.birth(parameter).loaded = True
            elif not entry.steps:
                entry.loaded = True

    def constructed(args: tuple[Any, ...], _kwargs: Any, _result: Any) -> None:
        session.registry.note(args[0], _here(session, skip=args[0]))

    def initialised(args: tuple[Any, ...], kwargs: dict[str, Any], _result: Any) -> None:
        tensor = args[0] if args else kwargs.get("tensor")
        if isinstance(tensor, nn.Parameter):
            session.note_written(tensor, _here(session))

    for name in [name for name in vars(nn.init) if name.endswith("_") and not name.startswith("_")]:
        patches.observe(nn.init, name, after=wrap("modules", initialised))
    patches.observe(nn.Module, "__init__", after=wrap("modules", constructed))
    patches.observe(nn.Module, "load_state_dict", after=wrap("modules", loaded))

    def release(args: tuple[Any, ...], _kwargs: Any) -> None:
        for tensor in args:
            session.parameters.release(tensor)
            session.tracer.release(tensor)
            session.losses.release(tensor)
            session.outputs.release(tensor)
            session.copies.release(tensor)
            session.lineage.release(tensor)
            session.feeds.release(tensor)
            session.activations.release(tensor)

    def hold_again(args: tuple[Any, ...], _kwargs: Any, _result: Any) -> None:
        for tensor in args:
            session.parameters.hold_again(tensor)

    patches.observe(torch.utils, "swap_tensors", wrap("modules", release), wrap("modules", hold_again))
    original = nn.Parameter.__new__

    def born(_args: Any, _kwargs: Any, parameter: Any) -> None:
        if isinstance(parameter, torch.Tensor):
            birth = session.parameters.birth(parameter)
            birth.site = birth.site or _here(session)

    patches.replace(nn.Parameter, "__new__", staticmethod(observed(original, after=wrap("modules", born))))
    noted = wrap("modules", session.note_intermediate_warning)
    show = warnings.showwarning

    def showwarning(message: Any, category: Any, filename: str, lineno: int, *args: Any, **kwargs: Any) -> None:
        if filename.startswith(PACKAGE):
            frame = _frame_of(filename)
            caller = _caller(frame)
            if frame is not None and caller is not None:
                frame.f_globals.pop("__warningregistry__", None)
                _warn_at(caller, message, category)
                return
        if str(message).startswith(_NON_LEAF_WARNING):
            noted(filename, lineno)
        show(message, category, filename, lineno, *args, **kwargs)

    patches.replace(warnings, "showwarning", showwarning)


def _frame_of(filename: str) -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != filename:
        frame = frame.f_back
    return frame


def _caller(frame: FrameType | None) -> FrameType | None:
    """Return the frame that a warning blamed on one of ours is meant for.

    torch blames the innermost Python frame, which is the tracer's: its caller's is meant. A function written in Python
    blames its caller; it was called by the tracer, for a first call of it that came through `handle_torch_function`.
    """
    detour = torch.overrides.handle_torch_function.__code__
    while frame is not None and (frame.f_code is detour or frame.f_code.co_filename.startswith(PACKAGE)):
        function = frame.f_back if frame.f_code is detour else frame
        frame = None if function is None else function.f_back
    return frame


def _warn_at(frame: FrameType, message: Any, category: Any) -> None:
    names = frame.f_globals
    registry = names.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, names.get("__name__"), registry)


def _patch_excepthook(_session: Session, patches: Patches) -> None:
    show = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException, _trace: TracebackType | None) -> None:
        clean_traceback(error)
        show(kind, error, error.__traceback__)

    patches.replace(sys, "excepthook", excepthook)


def _patch_compile(session: Session, patches: Patches) -> None:
    def compiling(_args: Any, _kwargs: Any) -> None:
        if _here(session) is not None:
            session.training.windows.note_compiled()

    patches.observe(torch, "compile", before=session.guard.wrap("compile", compiling))
    patches.observe(nn.Module, "compile", before=session.guard.wrap("compile", compiling))


def _global_hooks(session: Session) -> list[Any]:
    wrap, calm = session.guard.wrap, session.calm

    def pre_step(optimizer: Any, args: Any, kwargs: Any) -> Arguments | None:
        has_closure = closure_of(args, kwargs) is not None
        if not session.training.before_step(optimizer, has_closure) or not has_closure:
            return None
        begin = partial(wrap("steps", session.training.before_closure), optimizer)
        end = partial(wrap("steps", session.training.after_closure), optimizer)
        return with_closure(args, kwargs, begin, end)

    def post_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        has_closure = closure_of(args, kwargs) is not None
        session.training.after_step(optimizer, has_closure, _here(session, skip=optimizer))

    before, after = wrap("steps", pre_step), wrap("steps", post_step)

    def step_begins(optimizer: Any, args: Any, kwargs: Any) -> Arguments | None:
        return None if calm.passes_step(optimizer, args, kwargs) else before(optimizer, args, kwargs)

    def step_is_done(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not calm.passes_end_of_step(optimizer):
            after(optimizer, args, kwargs)

    def parameter_registered(module: nn.Module, name: str, parameter: Any) -> None:
        if parameter is not None:
            site = _here(session)
            session.registry.note(module, site)
            birth = session.parameters.birth(parameter)
            birth.site, birth.attribute = birth.site or site, name

    def module_registered(module: nn.Module, _name: str, child: Any) -> None:
        session.registry.note(module)
        if isinstance(child, nn.Module):
            session.registry.note(child)

    return [
        register_optimizer_step_pre_hook(step_begins),  # None, or other arguments
        register_optimizer_step_post_hook(step_is_done),
        module_hooks.register_module_parameter_registration_hook(_silent(wrap("modules", parameter_registered))),
        module_hooks.register_module_module_registration_hook(_silent(wrap("modules", module_registered))),
    ]


def _silent(function: Callable[..., Any]) -> Callable[..., None]:
    """Return a hook that returns None whatever happens: torch takes any other value as a replacement."""

    def hook(*args: Any) -> None:
        function(*args)

    return hook


_PARTS = (
    _patch_autograd,
    _patch_optimizers,
    patch_iterators,
    patch_clears,
    patch_schedulers,
    patch_scaler,
    patch_clipping,
    _patch_modules,
    _patch_compile,
    _patch_excepthook,
    patch_replicas,
    patch_compiled_hooks,
)
