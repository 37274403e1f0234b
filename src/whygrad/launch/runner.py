"""Running a program inside this process, as its real `__main__`.

For interpreters in which the start-up shim cannot work, and where the exit status has to be known (`--fail-on`). The
program sees what it would see under `python`: `__main__`, `sys.argv`, `sys.path[0]`; its traceback shows no frame of
whygrad; modules, packages, folders and archives are run by the same `runpy` function that the interpreter calls.
"""

from __future__ import annotations

import builtins
import io
import os
import runpy
import sys
from collections.abc import Callable
from importlib.machinery import BuiltinImporter, SourceFileLoader, SourcelessFileLoader
from pkgutil import get_importer
from types import ModuleType, TracebackType
from typing import Any

from whygrad.launch.standby import Standby
from whygrad.launch.target import Kind, Target

_BYTECODE = ".pyc"


def run(target: Target, standby: Standby) -> int:
    """Run the program to its end and return its status, 0; what it raises passes through.

    Args:
        target: What to run.
        standby: Is armed first, and told how the program ended.
    """
    main = _fresh_main()
    execute = {Kind.FILE: _run_file, Kind.MODULE: _run_module, Kind.CODE: _run_code}[target.kind]
    if not sys.flags.safe_path:
        del sys.path[0]  # the folder of whygrad's own command
    standby.arm()
    try:
        execute(target, main)
    except SystemExit as error:
        standby.status = _status(error.code)
        raise
    except BaseException as error:
        standby.status, standby.error = 1, error
        _hide_own_frames(error)
        raise
    standby.status = 0
    return 0


def _fresh_main() -> ModuleType:
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    main.__loader__ = BuiltinImporter
    if "__annotations__" in vars(sys.modules["__main__"]):  # some versions of Python begin with an empty one
        main.__annotations__ = {}
    sys.modules["__main__"] = main
    return main


def _run_file(target: Target, main: ModuleType) -> None:
    sys.argv = [target.name, *target.args]
    path = target.name if os.path.isabs(target.name) else os.path.join(os.getcwd(), target.name)  # not normalised
    if get_importer(path) is not None:  # a folder or an archive
        sys.path.insert(0, path)
        _run_as_main("__main__", alter_argv=False)
        return
    if not sys.flags.safe_path:
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    main.__file__ = path
    main.__dict__["__cached__"] = None
    loader = SourcelessFileLoader if path.endswith(_BYTECODE) else SourceFileLoader
    main.__loader__ = loader("__main__", path)
    exec(_code(path, main.__loader__), main.__dict__)  # noqa: S102 - running the program is the point


def _code(path: str, loader: Any) -> Any:
    if path.endswith(_BYTECODE):
        return loader.get_code("__main__")
    with io.open_code(path) as file:
        source = file.read()
    return compile(source, path, "exec", dont_inherit=True)


def _run_module(target: Target, _main: ModuleType) -> None:
    sys.argv = ["-m", *target.args]
    if not sys.flags.safe_path:
        sys.path.insert(0, os.getcwd())
    _run_as_main(target.name, alter_argv=True)


def _run_code(target: Target, main: ModuleType) -> None:
    sys.argv = ["-c", *target.args]
    if not sys.flags.safe_path:
        sys.path.insert(0, "")
    exec(compile(target.name, "<string>", "exec", dont_inherit=True), main.__dict__)  # noqa: S102 - the same


_run_as_main: Callable[..., Any] = runpy._run_module_as_main  # type: ignore[attr-defined]  # what `python -m` calls


def _status(code: object) -> int:
    """Return the exit status that the interpreter makes of `SystemExit.code`."""
    if code is None:
        return 0
    return code if isinstance(code, int) else 1


def _hide_own_frames(error: BaseException) -> None:
    """Let the interpreter print the traceback as it would have without whygrad.

    Our own callers will still be added to the traceback on its way up, so it is cut when it is printed.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    shown = sys.excepthook

    def excepthook(kind: type[BaseException], value: BaseException, _: TracebackType | None) -> None:
        sys.excepthook = shown
        sys.last_traceback = trace
        try:
            shown(kind, value.with_traceback(trace), trace)
        except BaseException as failure:  # the program's own hook is broken
            failure.__traceback__ = failure.__traceback__ and failure.__traceback__.tb_next
            raise

    sys.excepthook = excepthook
