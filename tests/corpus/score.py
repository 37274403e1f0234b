"""Score whygrad on the corpus: does it name the right cause, tensors and line of each failing program?

      ok  gb01-ticket-router               unregistered-parameter  kind where line   3.9 s
    MISS  ga08-difference-mask             nondifferentiable-op    kind where ----   4.2 s  got detached conv.weight :31

README.md beside this file says what a case is and what each measure asks for.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).resolve().parent
FLOORS = CORPUS / "floors.toml"
HEALTHY = "healthy"
MEASURES = {
    "graph": ("kind", "where", "line", "all"),
    "size": ("kind", "where", "line", "all"),
    "update": ("kind", "where", "line", "all"),
    HEALTHY: ("quiet",),
}
"""Family of cases -> what a case of it can score, in the order of the columns."""
TIMEOUT_S = 180.0

Finding = dict[str, Any]
Counts = dict[str, dict[str, int]]  # family -> measure -> cases


@dataclass(frozen=True, slots=True)
class Case:
    """A program and what is wrong with it."""

    folder: Path
    kind: str  # the slug of its fault, or "healthy"
    accepted: frozenset[str]  # every slug that is a right answer
    tensors: frozenset[str]
    lines: frozenset[int]  # every line that is a right answer; empty where any is
    launch: str  # the command that starts it, where it is not `python train.py`
    needs: tuple[str, ...]  # packages it imports besides torch

    @property
    def name(self) -> str:
        """Return the name of its folder."""
        return self.folder.name

    @property
    def family(self) -> str:
        """Return the name of the folder that its folder lies in."""
        return self.folder.parent.name


@dataclass(frozen=True, slots=True)
class Row:
    """What whygrad reached on one case."""

    case: str
    family: str
    kind: str
    points: dict[str, bool] = field(default_factory=dict)  # measure -> reached; empty where the case was skipped
    got: str = ""  # the first finding, or what went wrong
    seconds: float = 0.0
    lacking: tuple[str, ...] = ()  # packages that are not installed: the case was skipped
    answered: bool = True  # a findings file was left

    @property
    def hit(self) -> bool:
        """Return whether every measure was reached."""
        return all(self.points.values())


def load_case(folder: Path) -> Case:
    """Read one case's `expect.toml`."""
    expect = tomllib.loads((folder / "expect.toml").read_text(encoding="utf-8"))
    return Case(
        folder=folder,
        kind=expect["kind"],
        accepted=frozenset({expect["kind"], *expect.get("also_ok", ())}),
        tensors=frozenset(expect.get("tensors", ())),
        lines=frozenset(expect.get("line_ok") or (expect.get("line", 0),)) - {0},
        launch=expect.get("launch", ""),
        needs=tuple(expect.get("needs", ())),
    )


def load_cases(root: Path = CORPUS / "cases") -> list[Case]:
    """Return the cases below `root`, family by family."""
    cases = [load_case(path.parent) for path in root.glob("*/*/expect.toml")]
    families = list(MEASURES)
    return sorted(cases, key=lambda case: (families.index(case.family), case.name))


def same_tensor(one: str, other: str) -> bool:
    """Return whether two names agree up to a leading variable name, as `critic.0.weight` and `0.weight` do."""
    return one == other or one.endswith(f".{other}") or other.endswith(f".{one}")


def names_enough(case: Case, named: Iterable[str]) -> bool:
    """Return whether the names cover at least half of the tensors that the case affects."""
    names = list(named)
    hits = sum(any(same_tensor(tensor, name) for name in names) for tensor in case.tensors)
    return 2 * hits >= len(case.tensors)


def on_line(case: Case, finding: Finding) -> bool:
    """Return whether the finding's place is one that a fair person accepts."""
    in_script = Path(finding.get("file") or "").name == "train.py"
    return not case.lines or (in_script and finding.get("line") in case.lines)


def judge(case: Case, findings: Sequence[Finding]) -> dict[str, bool]:
    """Return measure -> reached, for the findings of one program, most important first."""
    if case.family == HEALTHY:
        return {"quiet": not any(finding["severity"] in {"error", "warning"} for finding in findings)}
    if not findings:
        return dict.fromkeys(MEASURES[case.family], False)
    first = findings[0]
    kind = first["rule"] in case.accepted
    where = kind and names_enough(case, first.get("tensors") or ())
    line = kind and on_line(case, first)
    return {"kind": kind, "where": where, "line": line, "all": kind and where and line}


def describe(case: Case, findings: Sequence[Finding]) -> str:
    """Return the answer in a few words: the first finding, or the loud ones of a healthy program."""
    if case.family == HEALTHY:
        return ", ".join(sorted({finding["rule"] for finding in findings if finding["severity"] != "info"}))
    if not findings:
        return "nothing found"
    first = findings[0]
    return f"{first['rule']} {', '.join(first.get('tensors') or ())[:40]} :{first.get('line')}"


def command(case: Case, findings_file: Path, python: str) -> list[str]:
    """Return the command line that runs the case under whygrad, in its folder."""
    whygrad = [python, "-m", "whygrad", "run", "--json", str(findings_file)]
    if not case.launch:
        return [*whygrad, "train.py"]
    _torchrun, *options, script = shlex.split(case.launch)
    return [python, "-m", "torch.distributed.run", *options, "--no-python", *whygrad, script]


def run_bounded(words: Sequence[str], folder: Path, timeout_s: float) -> str:
    """Run a command with all that it starts and return the end of what it printed.

    Raises:
        subprocess.TimeoutExpired: It took longer; the whole process group was killed.
    """
    process = subprocess.Popen(
        words,
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return " ".join(printed.split())[-300:]


def read_findings(path: Path) -> list[Finding]:
    """Return the findings of a findings file.

    Raises:
        OSError, ValueError, KeyError, TypeError: The file is missing or is not what the contract says.
    """
    findings = json.loads(path.read_text(encoding="utf-8"))["findings"]
    return [{**finding, "rule": finding["rule"], "severity": finding["severity"]} for finding in findings]


def score(case: Case, python: str = sys.executable, timeout_s: float = TIMEOUT_S) -> Row:
    """Run one case in a fresh copy of its folder and judge what whygrad found."""
    if lacking := tuple(package for package in case.needs if not is_installed(package, python)):
        return Row(case.name, case.family, case.kind, lacking=lacking)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="whygrad-corpus-") as scratch:
        folder = Path(scratch) / case.name
        shutil.copytree(case.folder, folder, ignore=shutil.ignore_patterns("expect.toml", "__pycache__"))
        findings, trouble = ask(command(case, folder / "findings.json", python), folder, timeout_s)
    seconds = round(time.monotonic() - began, 1)
    if findings is None:
        points = dict.fromkeys(MEASURES[case.family], False)
        return Row(case.name, case.family, case.kind, points, trouble, seconds, answered=False)
    return Row(case.name, case.family, case.kind, judge(case, findings), describe(case, findings), seconds)


def ask(words: Sequence[str], folder: Path, timeout_s: float) -> tuple[list[Finding] | None, str]:
    """Return the findings of a run in `folder`; None and what went wrong where it left no findings file."""
    try:
        printed = run_bounded(words, folder, timeout_s)
        return read_findings(folder / "findings.json"), ""
    except subprocess.TimeoutExpired:
        return None, f"no answer in {timeout_s:g} s"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return None, f"no findings file ({type(error).__name__}): {printed}"


@functools.cache
def is_installed(package: str, python: str = sys.executable) -> bool:
    """Return whether the interpreter that runs the cases finds the package."""
    if python == sys.executable:
        return importlib.util.find_spec(package) is not None
    find = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    return subprocess.run([python, "-c", find], check=False).returncode == 0


def count(rows: Iterable[Row]) -> Counts:
    """Return how many cases of each family reached each measure."""
    reached = {family: dict.fromkeys(measures, 0) for family, measures in MEASURES.items()}
    for row in rows:
        for measure, hit in row.points.items():
            reached[row.family][measure] += hit
    return reached


def read_floors(path: Path = FLOORS) -> Counts:
    """Return the fewest cases of each family that must reach each measure."""
    floors = tomllib.loads(path.read_text(encoding="utf-8"))
    return {family: {measure: int(floors[family][measure]) for measure in MEASURES[family]} for family in MEASURES}


def raise_floors(reached: Counts, path: Path = FLOORS) -> None:
    """Write the floors anew: the old ones, or what was reached where that is more."""
    old = read_floors(path)
    comment = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    blocks = [
        "\n".join([f"[{family}]", *(f"{name} = {max(old[family][name], reached[family][name])}" for name in measures)])
        for family, measures in MEASURES.items()
    ]
    path.write_text("\n".join(comment) + "\n\n" + "\n\n".join(blocks) + "\n", encoding="utf-8")


def shortfall(family: str, rows: Sequence[Row], floors: Counts) -> dict[str, tuple[int, int]]:
    """Return measure -> (reached, floor) where a family is below its floor; a skipped case counts as reached."""
    reached, skipped = count(rows)[family], sum(bool(row.lacking) for row in rows)
    return {name: (reached[name], floor) for name, floor in floors[family].items() if reached[name] + skipped < floor}


def line_of(row: Row) -> str:
    """Return a row as one line of the table."""
    head = f"{row.case:<40} {row.kind:<24}"
    if row.lacking:
        return f"skip  {head} install {', '.join(row.lacking)} to score it"
    marks = " ".join(name if hit else "-" * len(name) for name, hit in row.points.items() if name != "all")
    got = "" if row.hit else f"  got {row.got}"
    return f"{'  ok' if row.hit else 'MISS'}  {head} {marks:<15} {row.seconds:>5} s{got}"


def table(rows: Iterable[Row]) -> list[str]:
    """Return the rows as lines, family by family, each followed by its counts and floors."""
    rows, floors, lines = list(rows), read_floors(), []
    reached = count(rows)
    for family, measures in MEASURES.items():
        members = [row for row in rows if row.family == family]
        if not members:
            continue
        scored = sum(not row.lacking for row in members)
        sums = ", ".join(f"{name} {reached[family][name]} (floor {floors[family][name]})" for name in measures)
        lines += ["", *map(line_of, members), f"{family}: {scored} of {len(members)} scored; {sums}"]
    return lines


def score_all(cases: Sequence[Case], jobs: int, python: str, tell: Callable[[Row], None]) -> list[Row]:
    """Score the cases side by side, telling each row as soon as those before it are known."""
    rows = []
    with ThreadPoolExecutor(jobs) as pool:
        for row in pool.map(lambda case: score(case, python), cases):
            tell(row)
            rows.append(row)
    return rows


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME", help="case names, prefixes or families")
    parser.add_argument("--jobs", type=int, default=2, help="cases to run side by side (default 2)")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has whygrad and torch")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the rows there")
    parser.add_argument("--raise-floors", action="store_true", help="write what was reached into floors.toml")
    options = parser.parse_args(words)
    if options.raise_floors and options.only != [""]:
        parser.error("--raise-floors needs the whole corpus: leave --only out")
    return options


def main(words: Sequence[str] | None = None) -> int:
    """Score the corpus and print it as a table."""
    options = parse(words)
    wanted = tuple(options.only)
    cases = [case for case in load_cases() if case.name.startswith(wanted) or case.family in wanted]
    rows = score_all(cases, options.jobs, options.python, lambda row: print(line_of(row), flush=True))
    print("\n".join(line for line in table(rows) if line.startswith(tuple(MEASURES))))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")
    if options.raise_floors:
        raise_floors(count(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
