"""Programs run plainly and under whygrad, by both ways of launching."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.launch.standin import write_torch
from tests.programs import Ran, run


@dataclass(frozen=True)
class Bench:
    """A folder with the stand-in torch, in which programs are run."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def plain(self, *words: str, flags: Sequence[str] = (), stdin: str = "") -> Ran:
        return run([sys.executable, *flags, *words], self.folder, env=self.env, stdin=stdin)

    def watched(
        self, *words: str, flags: Sequence[str] = (), options: Sequence[str] = (), stdin: str = "", **env: str
    ) -> Ran:
        command = [sys.executable, *flags, "-m", "whygrad", "run", *options, *words]
        return run(command, self.folder, env=self.env | env, stdin=stdin)

    @property
    def log(self) -> list[str]:
        """Return what was done to the stand-in session."""
        file = Path(self.env["SESSION_LOG"])
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


@pytest.fixture(params=["shim", "runner"])
def launcher(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def bench(tmp_path: Path, launcher: str) -> Bench:
    return make_bench(tmp_path, launcher)


@pytest.fixture
def shim_bench(tmp_path: Path) -> Bench:
    return make_bench(tmp_path, "shim")


def make_bench(tmp_path: Path, launcher: str) -> Bench:
    folder = tmp_path / "work"
    folder.mkdir()
    env = {"PYTHONPATH": str(write_torch(tmp_path)), "SESSION_LOG": str(tmp_path / "session.log")}
    return Bench(folder, env | ({"WHYGRAD_LAUNCHER": "runner"} if launcher == "runner" else {}))
