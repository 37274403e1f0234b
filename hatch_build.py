"""The build's one step of its own: compile `whygrad/stats/native` where there is a C compiler.

The kernel is optional. Without a compiler the wheel is one for any machine, and whygrad measures in plain torch. With
one it is a wheel for this kind of machine and any Python: the library knows neither Python nor torch.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NATIVE = Path("src/whygrad/stats/native")
FLAGS = (
    "-O3",
    "-std=gnu11",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-fno-strict-aliasing",
    "-Wno-psabi",
    "-pthread",
)


class KernelBuildHook(BuildHookInterface[Any]):
    """Compiles before a wheel or an editable install is made."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the compiled kernel to what is packed."""
        del version
        library = compile_kernel(Path(self.root))
        if library is not None:
            build_data["artifacts"].append(library.relative_to(self.root).as_posix())
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"

    def clean(self, versions: list[str]) -> None:
        """Delete what was compiled."""
        del versions
        for built in (Path(self.root) / NATIVE).glob("_kernel.*"):
            built.unlink()


def compile_kernel(root: Path) -> Path | None:
    """Compile the kernel beside its source and return its path; None where that does not work."""
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None or sys.platform == "win32":
        return None
    folder = root / NATIVE
    library = folder / ("_kernel.dylib" if sys.platform == "darwin" else "_kernel.so")
    fresh = library.with_name(f"{library.name}.{os.getpid()}")  # a process may have the old one mapped
    command = [*compiler.split(), *FLAGS, *map(str, sorted(folder.glob("*.c"))), "-o", str(fresh), "-lm"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", b"") or str(error).encode()
        print(f"the kernel was not compiled: {reason.decode(errors='replace')}", file=sys.stderr)
        fresh.unlink(missing_ok=True)
        return None
    fresh.replace(library)
    return library
