"""What the watched process has to know, as one line of JSON in its environment."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace

from whygrad.config import DEFAULT_MAX_SIZE, Color, FailOn


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to watch a program. Paths are absolute: the program may change its working directory."""

    script: str  # what to call the program
    num_args: int  # its arguments are that many last words of the command line, which may be too long for a variable
    cwd: str  # where it was started
    folder: str  # of its run files; need not exist yet
    is_folder_chosen: bool = False  # the user named the folder
    json: str | None = None  # where to write the findings
    quiet: bool = False
    every: int | None = None  # record every N steps; None: as often as `overhead` allows
    overhead: float = 0.0  # share of the run's time
    max_size: float = DEFAULT_MAX_SIZE  # MB, of the run file of one rank
    trace_all: bool = False  # follow every call of every step, whatever it costs
    fail_on: FailOn = FailOn.NEVER
    color: Color = Color.AUTO
    rank: int = 0  # as it was at the start: a program may write to its environment
    world_size: int = 1
    local_world_size: int = 1

    @property
    def argv(self) -> tuple[str, ...]:
        """Return the program's arguments, from the command line of this process."""
        return tuple(sys.orig_argv[len(sys.orig_argv) - self.num_args :])

    def dumps(self) -> str:
        """Return the options as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def loads(cls, text: str) -> RunOptions:
        """Return the options that `dumps` wrote."""
        options = cls(**json.loads(text))
        return replace(options, fail_on=FailOn(options.fail_on), color=Color(options.color))
