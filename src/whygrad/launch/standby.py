"""From the start of the interpreter to the import of torch, and again when the program has ended.

This file is loaded by the start-up shim, before anything of the program and outside of the package: it imports only
what every interpreter has loaded already, and the package itself when it is needed.
"""

import atexit
import os
import sys
import time
from importlib.machinery import ModuleSpec, SourceFileLoader

TYPE_CHECKING = False  # typing's own is ten milliseconds away
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any

    from whygrad.probe.session import Session


class Standby:
    """Switches the probe on right after the program's `import torch`, and speaks when the program has ended.

    Until torch is there it is a finder on `sys.meta_path` that finds nothing. It acts only in the process that armed
    it, never in a forked child.
    """

    def __init__(self, package: str, options: str) -> None:
        """Prepare to watch this process.

        Args:
            package: The folder of whygrad.
            options: `RunOptions` as JSON.
        """
        self._package = package
        self._options = options
        self._pid = os.getpid()
        self._session: Session | None = None
        self._problem: Exception | None = None  # why there is no session although torch was imported
        self.error: BaseException | None = None  # what ended the program, where its runner knows
        self.status: int | None = None  # with which status it ended, where its runner knows

    def arm(self) -> None:
        """Wait for torch, and for the end of the program.

        The exit handler has to be the first one registered, for the last one called: after those of the program.
        """
        atexit.register(self._finish)
        if "torch" in sys.modules:
            self._activate()
        else:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> ModuleSpec | None:
        """Return what the other finders find for `torch`, prepared to call back; nothing for all other modules."""
        if name != "torch":
            return None
        for finder in [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if os.getpid() == self._pid and hasattr(spec.loader, "exec_module"):  # not a mere folder called torch
                    self._follow(spec.loader)
                return spec
        return None

    def _follow(self, loader: "Any") -> None:
        """Make the loader call back once, right after it has executed the module."""
        execute = loader.exec_module

        def exec_module(module: "ModuleType") -> None:
            vars(loader).pop("exec_module", None)
            try:
                execute(module)
            except BaseException as error:
                # A bare `raise` adds no entry: without ours the traceback is the one of a plain import.
                error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
                raise
            self._activate()

        try:
            loader.exec_module = exec_module
        except AttributeError as error:  # an odd loader: torch is imported, and not watched
            self._problem = error

    def _activate(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        began = time.perf_counter()
        try:
            self._import_package()
            from whygrad.uncollected import count_as_old, uncollected

            with uncollected():
                from whygrad.launch.boot import activate

                self._session = activate(self._options)
                count_as_old()
            self._session.count_start(began)
        except Exception as error:
            self._problem = error

    def _finish(self) -> None:
        if os.getpid() != self._pid:
            return
        try:
            self._import_package()
            from whygrad.uncollected import uncollected

            with uncollected():
                from whygrad.launch.finish import Ending, finish

                finish(self._options, Ending(self._session, self._problem, self.error or uncaught_error(), self.status))
        except Exception as error:
            _complain(error)

    def _import_package(self) -> None:
        """Import the whygrad that was started, wherever it is: the program's `sys.path` may not lead to it."""
        if "whygrad" in sys.modules:
            return
        from importlib.util import module_from_spec

        loader = SourceFileLoader("whygrad", os.path.join(self._package, "__init__.py"))
        spec = ModuleSpec("whygrad", loader, origin=loader.path, is_package=True)
        spec.has_location = True
        spec.submodule_search_locations = [self._package]
        package = sys.modules["whygrad"] = module_from_spec(spec)
        loader.exec_module(package)


def _complain(error: Exception) -> None:
    if sys.__stderr__ is not None and not sys.__stderr__.closed:
        sys.__stderr__.write(f"whygrad: internal error: {error!r} (the program was not affected)\n")


def uncaught_error() -> BaseException | None:
    """Return the exception that ended the program, if one did; never SystemExit.

    The interpreter leaves it in `sys` when it has printed it. Debuggers and test runners leave exceptions there too,
    which they caught: the traceback of those does not begin at the bottom of the stack.
    """
    error = getattr(sys, "last_value", None)
    trace = getattr(sys, "last_traceback", None)
    return error if trace is None or trace.tb_frame.f_back is None else None
