"""Run a program in a process of its own, plainly and under whygrad: what tests of whole runs build on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCRIPT = "train.py"
FINDINGS = "findings.json"


@dataclass(frozen=True, slots=True)
class Ran:
    """What a program that has ended left behind."""

    status: int  # exit status; minus the signal's number where a signal ended it
    stdout: str
    stderr: str
    folder: Path  # its working directory

    @property
    def report(self) -> dict[str, Any]:
        """Return the findings file that `whygrad run --json` wrote.

        Raises:
            AssertionError: There is none; the message shows what the program printed.
        """
        path = self.folder / FINDINGS
        assert path.exists(), f"no findings file; status {self.status}, stderr:\n{self.stderr}"
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return report

    @property
    def findings(self) -> list[dict[str, Any]]:
        """Return the findings, most important first."""
        findings: list[dict[str, Any]] = self.report["findings"]
        return findings

    @property
    def slugs(self) -> list[str]:
        """Return the rule of each finding, most important first."""
        return [finding["rule"] for finding in self.findings]


def run(
    words: Sequence[str], folder: Path, *, env: Mapping[str, str] | None = None, stdin: str = "", timeout_s: float = 120
) -> Ran:
    """Run a command in `folder`, with one thread, no colours and `env` on top of this process's environment.

    Raises:
        subprocess.TimeoutExpired: It took longer than `timeout_s`.
    """
    ended = subprocess.run(
        list(words),
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1", **(env or {})},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return Ran(ended.returncode, ended.stdout, ended.stderr, folder)


def run_plain(
    source: str, folder: Path, *args: str, env: Mapping[str, str] | None = None, timeout_s: float = 120
) -> Ran:
    """Write the program to `train.py` in `folder` and run it as `python train.py args`."""
    (folder / SCRIPT).write_text(source, encoding="utf-8")
    return run([sys.executable, SCRIPT, *args], folder, env=env, timeout_s=timeout_s)


def run_whygrad(
    source: str,
    folder: Path,
    *args: str,
    options: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    timeout_s: float = 120,
) -> Ran:
    """Write the program to `train.py` in `folder` and run it under `python -m whygrad run --json`.

    Args:
        source: The program.
        folder: Where it runs; its findings file and run folder are left there.
        *args: The program's own arguments.
        options: Options of `whygrad run`, as `("--every", "1")`.
        env: Variables on top of this process's environment.
        timeout_s: Seconds after which it is killed.

    Raises:
        subprocess.TimeoutExpired: It took longer than `timeout_s`.
    """
    (folder / SCRIPT).write_text(source, encoding="utf-8")
    (folder / FINDINGS).unlink(missing_ok=True)
    words = [sys.executable, "-m", "whygrad", "run", "--json", FINDINGS, *options, SCRIPT, *args]
    return run(words, folder, env=env, timeout_s=timeout_s)
