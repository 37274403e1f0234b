"""What the user set: `[tool.whygrad]` in a file, then `WHYGRAD_*` in the environment, then flags; the later wins.

    [tool.whygrad]            # in pyproject.toml; in whygrad.toml the same keys without a table
    every = 10                # or "auto": as often as `overhead` allows
    overhead = 0.02           # share of the run's time
    max-size = 256            # MB: what the run file of one rank may come to
    fail-on = "error"         # or "warning", "info", "never"
    color = "auto"            # or "always", "never"
    output-format = "text"    # or "json"
    quiet = false

The file is the nearest whygrad.toml, or pyproject.toml with that table, from the working directory upwards. An unknown
key is an error that names the nearest known one: a setting with a typing mistake must not be passed over in silence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from whygrad.errors import WhygradError

if TYPE_CHECKING:
    from whygrad.model import Finding

DEFAULT_OVERHEAD = 0.02
DEFAULT_MAX_SIZE = 256.0  # MB: about 1,500 recorded steps of 300 tensors
LEAST_MAX_SIZE = 16.0  # MB: several times what the probe hands over at once

_N = TypeVar("_N", int, float)


class Color(StrEnum):
    """When to write colours."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"

    def applies(self, environ: Mapping[str, str], *, is_terminal: bool) -> bool:
        """Return whether to write colours; under `auto`, NO_COLOR and FORCE_COLOR count, then the terminal."""
        if self is not Color.AUTO:
            return self is Color.ALWAYS
        if environ.get("NO_COLOR"):
            return False
        return bool(environ.get("FORCE_COLOR")) or (is_terminal and environ.get("TERM") != "dumb")


class FailOn(StrEnum):
    """From which severity on a finding makes the command fail."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    NEVER = "never"

    def reached_by(self, findings: Iterable[Finding]) -> bool:
        """Return whether one of the findings is at least that severe."""
        if self is FailOn.NEVER:
            return False
        from whygrad.model import Severity  # with all facts: half of the time in which a command starts

        return any(finding.severity.order <= Severity(self.value).order for finding in findings)


class OutputFormat(StrEnum):
    """How `whygrad report` writes."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one command."""

    every: int | None = None  # record every N steps; None: as often as `overhead` allows
    overhead: float = DEFAULT_OVERHEAD  # share of the run's time, above 0 and at most 1
    max_size: float = DEFAULT_MAX_SIZE  # MB (10**6 bytes), of the run file of one rank
    fail_on: FailOn | None = None  # None: `run` never fails, the reading commands fail on errors
    color: Color = Color.AUTO
    output_format: OutputFormat = OutputFormat.TEXT
    quiet: bool = False


def load(folder: Path, environ: Mapping[str, str], flags: Mapping[str, object]) -> Config:
    """Return the settings that hold in `folder`.

    Args:
        folder: Where to begin looking for a file.
        environ: The environment.
        flags: Field name -> value given on the command line; None where it was not given.

    Raises:
        WhygradError: An unknown key, a value that is none, or a file that is no TOML.
    """
    settings = (*_from_file(folder), *_from_environment(environ), *_from_flags(flags))
    values: dict[str, Any] = {name: _READERS[name](value, origin) for name, value, origin in settings}
    return replace(Config(), **values)


_Setting = tuple[str, object, str]  # field name, raw value, what to call it in a message

_ENVIRONMENT_PREFIX = "WHYGRAD_"
# switches of the launcher, see launch/command.py, and of the kernels, see stats/library.py
_NO_SETTINGS = frozenset({"WHYGRAD_DEBUG", "WHYGRAD_KERNEL", "WHYGRAD_LAUNCHER"})


def _from_file(folder: Path) -> Iterator[_Setting]:
    path, table = _nearest_table(folder.absolute())
    known = {name.replace("_", "-"): name for name in _READERS}
    for key, value in table.items():
        if key not in known:
            msg = f"{path}: unknown key `{key}` for whygrad{nearest(key, known)}"
            raise WhygradError(msg)
        yield known[key], value, f"`{key}` in {path}"


def _nearest_table(folder: Path) -> tuple[Path | None, Mapping[str, object]]:
    for parent in (folder, *folder.parents):
        own, shared = parent / "whygrad.toml", parent / "pyproject.toml"
        if own.is_file():
            return own, _read_toml(own)
        if shared.is_file():
            table = _read_toml(shared).get("tool", {}).get("whygrad")
            if isinstance(table, dict):
                return shared, table
    return None, {}


def _read_toml(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"{path} cannot be read as TOML: {error}"
        raise WhygradError(msg) from error


def _from_environment(environ: Mapping[str, str]) -> Iterator[_Setting]:
    known = {_ENVIRONMENT_PREFIX + name.upper(): name for name in _READERS}
    for variable, value in environ.items():
        if not variable.startswith(_ENVIRONMENT_PREFIX) or variable in _NO_SETTINGS:
            continue
        if variable not in known:
            msg = f"unknown environment variable {variable}{nearest(variable, known)}"
            raise WhygradError(msg)
        yield known[variable], value, variable


def _from_flags(flags: Mapping[str, object]) -> Iterator[_Setting]:
    for name, value in flags.items():
        if value is not None:
            yield name, value, f"--{name.replace('_', '-')}"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `: did you mean X?` for the known word nearest to `word`, or the whole choice where none is near."""
    import difflib

    words = sorted(known)
    close = difflib.get_close_matches(word, words, n=1)
    return f": did you mean `{close[0]}`?" if close else f": known are {', '.join(words)}"


def _every(value: object, origin: str) -> int | None:
    if value == "auto":
        return None
    steps = _parsed(int, value)
    if steps is None or steps < 1:
        raise _unfit(value, origin, 'a whole number of steps from 1 on, or "auto"')
    return steps


def _overhead(value: object, origin: str) -> float:
    share = _parsed(float, value)
    if share is None or not 0 < share <= 1:
        raise _unfit(value, origin, "a share of the run's time, above 0 and up to 1")
    return share


def _max_size(value: object, origin: str) -> float:
    size = _parsed(float, value)
    if size is None or not LEAST_MAX_SIZE <= size < math.inf:
        raise _unfit(value, origin, f"a number of MB from {LEAST_MAX_SIZE:.0f} on")
    return size


def _parsed(kind: Callable[[str], _N], value: object) -> _N | None:
    try:
        return kind(str(value))
    except ValueError:
        return None


def _quiet(value: object, origin: str) -> bool:
    words = {"true": True, "1": True, "false": False, "0": False}
    word = str(value).lower()
    if word not in words:
        raise _unfit(value, origin, "true or false")
    return words[word]


def _choice(kind: type[StrEnum]) -> Callable[[object, str], StrEnum]:
    def read(value: object, origin: str) -> StrEnum:
        if value not in list(kind):
            raise _unfit(value, origin, "one of " + ", ".join(kind))
        return kind(str(value))

    return read


def _unfit(value: object, origin: str, wanted: str) -> WhygradError:
    return WhygradError(f"{origin} is {value!r}; it has to be {wanted}")


_READERS: dict[str, Callable[[object, str], object]] = {
    "every": _every,
    "overhead": _overhead,
    "max_size": _max_size,
    "fail_on": _choice(FailOn),
    "color": _choice(Color),
    "output_format": _choice(OutputFormat),
    "quiet": _quiet,
}
