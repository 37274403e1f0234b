"""What to run: a file, a module or code, as one would give it to `python`."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from enum import StrEnum
from importlib.machinery import PathFinder
from pathlib import Path

from whygrad.errors import WhygradError


class Kind(StrEnum):
    """How the program was named."""

    FILE = "file"
    MODULE = "module"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Target:
    """A program and its arguments."""

    kind: Kind
    name: str  # path, module name, or the code itself
    args: tuple[str, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        """Return what follows `python` to run it."""
        flags = {Kind.FILE: (), Kind.MODULE: ("-m",), Kind.CODE: ("-c",)}[self.kind]
        return (*flags, self.name, *self.args)

    @property
    def script(self) -> str:
        """Return what to call it: the path, `-m pkg.train`, or `-c`."""
        return {Kind.FILE: self.name, Kind.MODULE: f"-m {self.name}", Kind.CODE: "-c"}[self.kind]

    @property
    def stem(self) -> str:
        """Return a short name for files about it."""
        name = {Kind.FILE: Path(self.name).stem, Kind.MODULE: self.name, Kind.CODE: "command"}[self.kind]
        return re.sub(r"[^\w.-]+", "_", name).strip(".-")[:60] or "program"


_LAUNCHERS = frozenset(
    {
        "accelerate",
        "accelerate.commands.accelerate_cli",
        "accelerate.commands.launch",
        "deepspeed",
        "deepspeed.launcher.runner",
        "torch.distributed.launch",
        "torch.distributed.run",
        "torchrun",
    }
)
"""Programs that train in processes of their own: under whygrad only the launcher itself would be watched."""


def check_torch() -> None:
    """Check that a program could import torch.

    Raises:
        WhygradError: It could not.
    """
    if importlib.util.find_spec("torch") is None:
        msg = 'torch is not installed here: install it with `pip install "whygrad[torch]"`'
        raise WhygradError(msg)


def check(target: Target) -> None:
    """Check that there is something to run, without running any of it.

    Raises:
        WhygradError: There is not, or it starts the training in other processes.
    """
    if target.kind is Kind.CODE:
        return
    if Path(target.name).name in _LAUNCHERS:
        msg = (
            f"`{target.name}` trains in processes of its own: start whygrad in each of them, "
            "with `torchrun [options] --no-python python -m whygrad run train.py`"
        )
        raise WhygradError(msg)
    if target.kind is Kind.FILE:
        _check_file(Path(target.name))
    else:
        _check_module(target.name)


def _check_file(path: Path) -> None:
    try:
        if path.is_dir() and not (path / "__main__.py").is_file():
            msg = f"`{path}` is a folder without a __main__.py: name the script in it"
            raise WhygradError(msg)
        if not path.is_dir():
            path.open("rb").close()
    except FileNotFoundError:
        msg = f"there is no file `{path}`{_similar(path)}"
        raise WhygradError(msg) from None
    except (OSError, ValueError) as error:
        msg = f"`{path}` cannot be read: {error}"
        raise WhygradError(msg) from error


def _similar(path: Path) -> str:
    """Return a question that names the script beside it whose name is near, or nothing."""
    from difflib import get_close_matches

    close = get_close_matches(path.name, [entry.name for entry in path.parent.glob("*.py")], n=1)
    return f": did you mean `{path.with_name(close[0])}`?" if close else ""


def _check_module(name: str) -> None:
    # Only the outermost package is looked for: to look deeper is to import it, which would run its code twice.
    outermost = name.partition(".")[0]
    try:
        found = PathFinder.find_spec(outermost, [str(Path.cwd())]) or importlib.util.find_spec(outermost)
    except ValueError:  # no name at all, or that of a module without a spec
        found = None
    if found is None:
        msg = f"there is no module `{name}` in the working directory or among the installed packages"
        raise WhygradError(msg)
