"""What starts quickly: what each command imports, what is read of a run, and how often it is looked through."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from benchmarks.startup_runs import write_run
from whygrad.evidence import Evidence
from whygrad.launch.options import RunOptions
from whygrad.model import Cut, CutKind, PathEnd, Role
from whygrad.report.verdict import judge
from whygrad.rules import all_rules
from whygrad.rules._once import once
from whygrad.run import load
from whygrad.runfile.matrices import FileMatrices
from whygrad.uncollected import count_as_old, uncollected

ROLES_READ = 6  # by the rules, of a run in which nothing is wrong


def loaded_by(code: str, folder: Path) -> set[str]:
    """Return the modules that a fresh interpreter has after `code`, less those that it starts with."""
    tell = f"import sys; before = set(sys.modules)\n{code}\nprint(*set(sys.modules) - before)"
    ended = subprocess.run([sys.executable, "-c", tell], cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    return set(ended.stdout.splitlines()[-1].split())


def own(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "whygrad"}


def foreign(modules: set[str]) -> set[str]:
    """Return the modules that belong neither to whygrad nor to Python."""
    return {name for name in modules if name.partition(".")[0] not in {"whygrad", *sys.stdlib_module_names}}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run in which nothing is wrong: 8 layers, 400 steps, each recorded."""
    write_run(tmp_path / "run", parameters=8, steps=400, every=1)
    return tmp_path / "run"


# -- imports -----------------------------------------------------------------------------------------------------------


def test_importing_whygrad_imports_its_version_and_nothing_that_takes_long(tmp_path: Path) -> None:
    loaded = loaded_by("import whygrad", tmp_path)

    assert own(loaded) == {"whygrad", "whygrad._version"}
    assert not foreign(loaded)
    assert loaded.isdisjoint({"dataclasses", "inspect", "pathlib", "sqlite3", "argparse", "json"})


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_a_report_imports_neither_other_packages_nor_the_other_half(run: Path, output_format: str) -> None:
    words = ["report", "--output-format", output_format, str(run)]

    loaded = loaded_by(f"from whygrad.cli import main\nassert main({words}) == 0", run)

    assert {name.split(".")[1] for name in own(loaded) if "." in name} <= {
        *("_version", "cli", "config", "errors", "evidence", "launch", "model", "report", "rules", "run", "runfile"),
        *("spread", "uncollected"),
    }
    assert not foreign(loaded)
    assert loaded.isdisjoint({"html", "difflib", "tomllib", "multiprocessing", "asyncio", "logging"})


def test_what_comes_before_the_program_knows_no_facts_and_reads_no_files(tmp_path: Path) -> None:
    replaced = "import os\ndef stop(*_): raise SystemExit\nos.execve = stop\n"
    start = "from whygrad.cli import main\ntry: main(['run', '-c', 'pass'])\nexcept SystemExit: pass"

    loaded = loaded_by(replaced + start, tmp_path)

    assert "whygrad.launch.command" in loaded
    assert loaded.isdisjoint({"whygrad.model", "whygrad.evidence", "whygrad.run", "sqlite3", "torch"})
    assert not foreign(loaded)


@pytest.mark.parametrize(("quiet", "judged"), [(True, False), (False, True)])
def test_a_verdict_that_nobody_asks_for_is_not_worked_out(tmp_path: Path, *, quiet: bool, judged: bool) -> None:
    options = RunOptions("train.py", 0, str(tmp_path), str(tmp_path / "run"), quiet=quiet)
    end = f"from whygrad.launch.finish import Ending, finish\nfinish({options.dumps()!r}, Ending(None))"

    assert ("whygrad.report" in loaded_by(end, tmp_path)) is judged


# -- garbage -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def collecting() -> Iterator[None]:
    """Let the test switch the garbage collector as it likes."""
    enabled = gc.isenabled()
    yield
    (gc.enable if enabled else gc.disable)()


@pytest.mark.usefixtures("collecting")
def test_the_garbage_collector_rests_in_the_block_and_works_again_behind_it() -> None:
    gc.enable()

    with uncollected():
        inside = gc.isenabled()
    with suppress(ZeroDivisionError), uncollected():
        raise ZeroDivisionError

    assert not inside
    assert gc.isenabled()


@pytest.mark.usefixtures("collecting")
def test_a_garbage_collector_that_the_program_switched_off_stays_off() -> None:
    gc.disable()

    with uncollected():
        pass

    assert not gc.isenabled()


def test_what_a_program_has_put_aside_from_the_garbage_collector_stays_there() -> None:
    code = "import gc; from whygrad.uncollected import count_as_old; gc.freeze(); before = gc.get_freeze_count()"
    check = "count_as_old(); assert gc.get_freeze_count() == before > 0"

    subprocess.run([sys.executable, "-c", f"{code}\n{check}"], env={**os.environ}, check=True)


def test_objects_that_count_as_old_are_still_seen_and_still_freed() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    count_as_old()

    assert any(each is cycle for each in gc.get_objects())
    assert gc.get_freeze_count() == 0
    number = id(cycle)
    del cycle
    gc.collect()
    assert all(id(each) != number for each in gc.get_objects() if type(each) is list and each[:1] == [each])


# -- reading -----------------------------------------------------------------------------------------------------------


def test_the_statistics_of_steps_are_read_when_a_rule_asks_for_them_and_once(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: Counter[tuple[str, int, Role]] = Counter()
    load_one = FileMatrices._load

    def counted(self: FileMatrices, table: str, step: int, role: Role) -> dict[int, Any]:
        read[table, step, role] += 1
        return load_one(self, table, step, role)

    monkeypatch.setattr(FileMatrices, "_load", counted)
    opened = load(run)
    assert not read

    assert opened.findings == ()
    assert read
    assert set(read.values()) == {1}
    assert len(read) <= 32 * ROLES_READ  # a sample, however many were recorded
    assert {table for table, *_ in read} == {"matrix"}


# -- looking through ---------------------------------------------------------------------------------------------------


class Watched(tuple):  # type: ignore[type-arg]  # of facts of any kind
    """Facts that count how many of them were looked at."""

    __slots__ = ()
    looks: ClassVar[Counter[str]] = Counter()

    def __iter__(self) -> Iterator[Any]:
        for fact in super().__iter__():
            Watched.looks[type(fact).__name__] += 1
            yield fact


def looks(evidence: Evidence) -> Counter[str]:
    """Return how many facts of each kind all rules look at together."""
    facts = {f.name: getattr(evidence, f.name) for f in fields(evidence)}
    watched: dict[str, Any] = {name: Watched(value) for name, value in facts.items() if isinstance(value, tuple)}
    Watched.looks = Counter()
    judge((replace(evidence, **watched),), all_rules())
    return Watched.looks


def healthy(evidence: Evidence) -> Evidence:
    return evidence


def cut_off(evidence: Evidence) -> Evidence:
    parameters = [replace(p, gradient_steps=0, reached=0, path=PathEnd.CUT) for p in evidence.parameters]
    cuts = [Cut(p.id, p.id, CutKind.DETACH, "detach") for p in parameters]
    totals = [total for total in evidence.totals if total.role is Role.WEIGHT]
    return replace(evidence, parameters=tuple(parameters), cuts=tuple(cuts), totals=tuple(totals))


def unheld(evidence: Evidence) -> Evidence:
    parameters = [replace(p, optimizers=()) if p.id % 2 else p for p in evidence.parameters]
    return replace(evidence, parameters=tuple(parameters))


@pytest.mark.parametrize("state", [healthy, cut_off, unheld])
def test_looking_through_the_facts_grows_as_the_model_does_and_no_faster(tmp_path: Path, state: Any) -> None:
    counts = []
    for layers in (20, 80):
        write_run(tmp_path / str(layers), parameters=layers, steps=40, every=1)
        counts.append(looks(state(load(tmp_path / str(layers)).evidence)))
    few, many = counts

    assert many["Parameter"] > 80
    assert {kind: count for kind, count in many.items() if count > 4.5 * few[kind]} == {}


def test_what_many_rules_ask_is_worked_out_once_for_each_evidence_and_question(run: Path) -> None:
    asked: list[tuple[Evidence, Sequence[int]]] = []

    @once
    def total(evidence: Evidence, numbers: tuple[int, ...]) -> int:
        asked.append((evidence, numbers))
        return sum(numbers) + len(evidence.parameters)

    one, other = load(run).evidence, load(run).evidence
    answers = [total(one, (1, 2)), total(one, (1, 2)), total(one, (5,)), total(other, (1, 2))]

    assert answers == [11, 11, 13, 11]
    assert len(asked) == 3
