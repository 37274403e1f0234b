"""How a case is judged, and that the corpus itself is in order."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.corpus import score as scoring
from tests.corpus.score import MEASURES, Case, Row

CASES = scoring.load_cases()


def make_case(**changes):
    fields = {
        "folder": Path("cases/graph/x01-example"),
        "kind": "detached",
        "accepted": frozenset({"detached", "no-grad-region"}),
        "tensors": frozenset({"a.weight", "a.bias", "b.weight"}),
        "lines": frozenset({7, 8}),
        "launch": "",
        "needs": (),
    }
    return Case(**{**fields, **changes})


def make_finding(**changes):
    fields = {"rule": "detached", "severity": "error", "tensors": ["a.weight", "a.bias"], "file": "train.py", "line": 7}
    return {**fields, **changes}


HEALTHY = make_case(folder=Path("cases/healthy/h99-example"), kind="healthy")


def test_the_right_kind_tensors_and_line_score_everything():
    assert scoring.judge(make_case(), [make_finding()]) == {"kind": True, "where": True, "line": True, "all": True}


def test_only_the_first_finding_counts():
    points = scoring.judge(make_case(), [make_finding(rule="dead-relu"), make_finding()])

    assert not any(points.values())


def test_another_accepted_kind_is_right():
    assert scoring.judge(make_case(), [make_finding(rule="no-grad-region")])["all"]


def test_no_finding_scores_nothing():
    assert not any(scoring.judge(make_case(), []).values())


def test_fewer_than_half_of_the_tensors_are_too_few():
    points = scoring.judge(make_case(), [make_finding(tensors=["a.weight"])])

    assert points == {"kind": True, "where": False, "line": True, "all": False}


@pytest.mark.parametrize("tensors", [None, []])
def test_no_tensors_are_too_few_unless_the_case_has_none(tensors):
    assert not scoring.judge(make_case(), [make_finding(tensors=tensors)])["where"]
    assert scoring.judge(make_case(tensors=frozenset()), [make_finding(tensors=tensors)])["where"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a.weight", "a.weight", True),
        ("critic.a.weight", "a.weight", True),
        ("a.weight", "critic.a.weight", True),
        ("ba.weight", "a.weight", False),
        ("a.weight", "a.bias", False),
    ],
)
def test_a_leading_variable_name_makes_no_difference(one, other, same):
    assert scoring.same_tensor(one, other) is same


@pytest.mark.parametrize(
    ("place", "right"),
    [
        ({"file": "/somewhere/train.py", "line": 8}, True),
        ({"file": "train.py", "line": 9}, False),
        ({"file": "other.py", "line": 7}, False),
        ({"file": None, "line": None}, False),
    ],
)
def test_the_line_must_be_one_of_the_accepted_in_the_script(place, right):
    assert scoring.judge(make_case(), [make_finding(**place)])["line"] is right


def test_any_line_will_do_where_the_case_names_none():
    points = scoring.judge(make_case(lines=frozenset()), [make_finding(file=None, line=None)])

    assert points["line"]


@pytest.mark.parametrize(("severity", "quiet"), [("error", False), ("warning", False), ("info", True)])
def test_a_healthy_program_may_only_be_told_things_worth_knowing(severity, quiet):
    findings = [make_finding(severity=severity)]

    assert scoring.judge(HEALTHY, findings) == {"quiet": quiet}
    assert scoring.describe(HEALTHY, findings) == ("" if quiet else "detached")


def test_a_case_is_started_as_a_user_would_start_it():
    findings = Path("/x/findings.json")

    assert scoring.command(make_case(), findings, "py") == [
        *("py", "-m", "whygrad", "run", "--json", "/x/findings.json", "train.py")
    ]
    assert scoring.command(make_case(launch="torchrun --standalone --nproc-per-node=2 train.py"), findings, "py") == [
        *("py", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python"),
        *("py", "-m", "whygrad", "run", "--json", "/x/findings.json", "train.py"),
    ]


def interpreter(tmp_path, body):
    """Return a stand-in for python: called like it, it runs `body` with the findings file's path in $5."""
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def real_case(tmp_path):
    folder = tmp_path / "graph" / "x01-example"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text("pass\n", encoding="utf-8")
    (folder / "expect.toml").write_text('kind = "detached"\nline = 1\n', encoding="utf-8")
    return scoring.load_case(folder)


def test_a_run_is_scored_in_a_copy_that_cannot_see_the_answer(tmp_path):
    seen = tmp_path / "seen"

    scoring.score(case := real_case(tmp_path), interpreter(tmp_path, f"ls > {seen}; pwd >> {seen}"))

    name, folder = seen.read_text(encoding="utf-8").splitlines()
    assert name == "train.py"
    assert Path(folder) != case.folder


def test_findings_that_were_left_are_judged(tmp_path):
    finding = '{"rule": "detached", "severity": "error", "tensors": [], "file": "train.py", "line": 1}'
    python = interpreter(tmp_path, f'echo \'{{"findings": [{finding}]}}\' > "$5"; exit 3')

    row = scoring.score(real_case(tmp_path), python)

    assert row.hit
    assert row.answered
    assert row.got == "detached  :1"


def test_a_run_that_leaves_no_findings_file_scores_nothing_and_says_why(tmp_path):
    row = scoring.score(real_case(tmp_path), interpreter(tmp_path, "echo it broke >&2"))

    assert not row.answered
    assert not any(row.points.values())
    assert row.got == "no findings file (FileNotFoundError): it broke"


def test_a_run_that_hangs_is_ended_with_its_children(tmp_path):
    began = time.monotonic()

    row = scoring.score(real_case(tmp_path), interpreter(tmp_path, "sleep 60 & sleep 60"), timeout_s=0.3)

    assert time.monotonic() - began < 10
    assert row.got == "no answer in 0.3 s"


def test_a_case_whose_package_is_missing_is_skipped_and_says_what_to_install(tmp_path):
    (case := real_case(tmp_path)).folder.joinpath("expect.toml").write_text(
        'kind = "detached"\nneeds = ["no_such_package"]\n', encoding="utf-8"
    )

    row = scoring.score(scoring.load_case(case.folder))

    assert row.lacking == ("no_such_package",)
    assert "install no_such_package" in scoring.line_of(row)
    assert row.points == {}


def test_floors_only_rise(tmp_path):
    floors = tmp_path / "floors.toml"
    floors.write_text(scoring.FLOORS.read_text(encoding="utf-8"), encoding="utf-8")
    higher = {family: dict.fromkeys(names, 1000) for family, names in MEASURES.items()}
    lower = {family: dict.fromkeys(names, 0) for family, names in MEASURES.items()}

    scoring.raise_floors(higher, floors)
    scoring.raise_floors(lower, floors)

    assert scoring.read_floors(floors) == higher
    assert floors.read_text(encoding="utf-8").startswith("# How many cases")


def test_a_family_below_its_floor_falls_short_by_measure():
    points = {"kind": True, "where": True, "line": False, "all": False}
    rows = [Row("g01", "graph", "detached", points), Row("g02", "graph", "detached", points)]
    floors = {"graph": {"kind": 2, "where": 1, "line": 1, "all": 0}}

    assert scoring.shortfall("graph", rows, floors) == {"line": (0, 1)}
    assert scoring.shortfall("graph", rows, {"graph": dict.fromkeys(points, 0)}) == {}


def test_a_case_that_was_skipped_makes_no_family_fall_short():
    rows = [Row("u01", "update", "no-step", lacking=("peft",))]

    assert scoring.shortfall("update", rows, {"update": {"kind": 1}}) == {}
    assert scoring.shortfall("update", rows, {"update": {"kind": 2}}) == {"kind": (0, 2)}


def test_the_table_counts_each_family():
    rows = [
        Row("g01", "graph", "detached", {"kind": True, "where": True, "line": False, "all": False}, "detached a :3", 1),
        Row("g02", "graph", "detached", {"kind": True, "where": True, "line": True, "all": True}, "detached a :3", 1),
        Row("h01", "healthy", "healthy", {"quiet": True}, "", 1),
    ]

    lines = scoring.table(rows)

    assert any(line.startswith("MISS  g01") and line.endswith("got detached a :3") for line in lines)
    assert any(line.startswith("graph: 2 of 2 scored; kind 2 (floor") for line in lines)
    assert any(line.startswith("healthy: 1 of 1 scored; quiet 1 (floor") for line in lines)
    assert not any(line.startswith("size") for line in lines)


def test_every_family_has_cases_and_no_floor_is_out_of_reach():
    sizes = {family: sum(case.family == family for case in CASES) for family in MEASURES}

    assert all(sizes.values())
    assert all(floor <= sizes[family] for family, floors in scoring.read_floors().items() for floor in floors.values())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_is_well_formed(case):
    source = (case.folder / "train.py").read_text(encoding="utf-8")

    ast.parse(source)
    assert case.lines <= set(range(1, source.count("\n") + 2))
    assert (case.kind == "healthy") == (case.family == "healthy")


def test_the_scorer_lists_cases_by_name_prefix_or_family():
    ran = subprocess.run(
        [sys.executable, scoring.__file__, "--only", "no-such-case"], capture_output=True, text=True, check=True
    )

    assert ran.stdout.strip() == ""


def test_floors_are_not_raised_from_a_part_of_the_corpus(capsys):
    with pytest.raises(SystemExit):
        scoring.parse(["--only", "graph", "--raise-floors"])

    assert "whole corpus" in capsys.readouterr().err
