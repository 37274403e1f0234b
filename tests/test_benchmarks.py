"""The benchmark works; what it measures is not judged here."""

from __future__ import annotations

import json
import sys
import warnings

import pytest
import torch

from benchmarks import __main__ as bench
from benchmarks import aims, default_mode, parts, plans, turns
from benchmarks.clock import TurnClock
from benchmarks.default_mode import Piece
from benchmarks.habits import HABITS, is_installed, nothing
from benchmarks.in_place import KERNELS, in_place
from benchmarks.memory import memory
from benchmarks.page import markdown
from benchmarks.run_files import own_share, stored
from benchmarks.table import ratio_table
from benchmarks.worker import train
from benchmarks.workloads import WORKLOADS, make

TINY = "tiny MLP 4-8-2"
MINUTE = "whygrad, run of 1 minute"
SLOW_TO_START = {"wandb.watch", "torchlens"}  # one starts a process, the other wraps all of torch


def test_variants_take_turns_in_processes_of_their_own():
    with turns.workers_of(TINY, (turns.PLAIN, turns.EVERY)) as workers:
        found = turns.take_turns(workers, 1, 0.001, warm_steps=4)
        workers[turns.EVERY].end()
        written = stored(workers[turns.EVERY].folder, found.last[turns.EVERY]["gradient_l2"])
    assert found.ratios(turns.PLAIN) == {"ratio": 1.0, "low": 1.0, "high": 1.0}
    assert found.ratios(turns.EVERY)["ratio"] > 1.0
    assert 64 < written["row_bytes"] < 1000
    assert 0 < written["stored_bytes"] < 1e6


def test_dear_steps_of_a_few_rounds_are_not_left_out():
    found = turns.Turns({turns.PLAIN: [1.0, 1.0, 1.0], turns.DEFAULT: [1.0, 1.0, 2.5]}, {})
    assert found.ratios(turns.DEFAULT)["ratio"] == 1.0
    assert found.whole_ratio(turns.DEFAULT)["ratio"] == 1.5


def test_a_clock_stands_still_while_others_have_their_turn():
    time = iter([10.0, 11.0, 16.0, 18.0])
    clock = TurnClock(lambda: next(time))
    assert clock() == 10.0
    with clock.stopped():
        pass  # from 11 to 16
    assert clock() == 13.0


def test_whygrad_goes_by_that_clock_and_what_it_says_of_itself_is_read():
    with turns.worker(TINY, turns.DEFAULT) as watched:
        watched.ask("run 5")
        watched.end()
        said = own_share(watched.folder)
    assert said["steps"] == said["recorded"] == 5
    assert 0 < said["own_s"] < said["duration_s"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("habit", [habit for habit in HABITS if is_installed(habit) and habit not in SLOW_TO_START])
@pytest.mark.parametrize("name", [TINY, "decoder, 6 layers"])
def test_the_hooks_of_each_habit_fire_and_their_numbers_are_right(habit, name):
    workload = make(name)
    try:
        installed = HABITS[habit](workload)
        train(workload, installed)
        installed.check(train(workload, installed))
    finally:
        torch.autograd.set_detect_anomaly(False)


@pytest.mark.parametrize("habit", sorted(habit for habit in SLOW_TO_START if is_installed(habit)))
def test_habits_that_change_the_process_are_checked_in_one_of_their_own(habit):
    with turns.worker(TINY, habit) as each:
        each.ask("run 2")
        assert each.ask("check")["gradient_l2"] > 0


@pytest.mark.parametrize("habit", ["the lesson's hook", "and a hook per module"])
def test_a_check_fails_where_a_hook_is_gone(habit):
    workload = make(TINY)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        installed = HABITS[habit](workload)
        for parameter in workload.model.parameters():
            parameter._backward_hooks.clear()
        output = train(workload, installed)
    with pytest.raises(KeyError):
        installed.check(output)


def test_a_check_fails_where_a_number_is_wrong():
    workload = make(TINY)
    installed = HABITS["the lesson's hook"](workload)
    output = train(workload, installed)
    for parameter in workload.model.parameters():
        parameter.grad *= 1.01
    with pytest.raises(AssertionError):
        installed.check(output)


def test_a_larger_batch_holds_the_same_samples():
    once, twice = make(TINY), make(TINY, batches=2)
    assert torch.equal(twice.inputs, torch.cat([once.inputs, once.inputs]))
    outputs = [nothing(each).backward() for each in (once, twice)]
    assert torch.allclose(outputs[1], torch.cat([outputs[0], outputs[0]]))


def test_kernels_are_measured_in_their_place():
    found = in_place(make(TINY), 1)
    assert tuple(found) == KERNELS
    assert all(seconds > 0 for seconds in found.values())


def test_a_full_histogram_is_full(monkeypatch):
    from whygrad.stats import kernel

    counted = []
    measure = kernel.measure

    def note(tensors, **options):
        found = measure(tensors, **options)
        if found.histograms is not None:
            counted.append(int(found.histograms[0].sum()))
        return found

    monkeypatch.setattr(kernel, "measure", note)
    workload = make("MLP 784-512-512-10")
    in_place(workload, 1)
    sampled, full = counted[-2:]
    assert full == (workload.model[0].weight.grad != 0).sum() > 4 * sampled


def test_memory_counts_the_code_apart():
    found = memory(TINY, 4)
    assert set(found) == {"added_mb", "batch_mb", "steps_mb", "code_mb"}
    assert found["code_mb"] > 1


def test_the_start_of_the_default_mode_counts_as_a_whole():
    pieces = [Piece(10, 5.0, 2.0, 2.5), Piece(10, 3.0, 2.0, 1.0)]
    assert default_mode.over(pieces, 1.0, 5.0) == 2.5
    assert default_mode.over(pieces, 1.0, 8.0) == 2.0
    assert default_mode.over(pieces, 1.0, 12.0) == 12 / 8  # four more seconds of the plain loop
    assert default_mode.over(pieces, 2.0, 12.0) == 12 / 6
    assert default_mode.over(pieces, 1.0, 6.5) == 6.5 / 3  # half of the second piece
    assert default_mode.first(pieces, 10) == pieces[:1]
    assert sum(piece.extra_s for piece in pieces) == 4.0


def test_parts_add_up_to_most_of_what_a_step_takes():
    script = "import sys, json; from benchmarks.parts import measure; print(json.dumps(measure(sys.argv[1], 5, 20)))"
    found = json.loads(turns.subprocess.check_output([sys.executable, "-c", script, TINY], cwd=bench.FOLDER.parent))
    by_part = {row["part"] for row in found["rows"]}
    assert {"steps", "outputs", "statistics", "run file"} <= by_part
    assert sum(row["us"] for row in found["rows"]) > 0.3 * (found["watched_us"] - found["plain_us"])


def test_the_time_of_a_nested_function_counts_once():
    ledger = parts.Ledger()
    inner = ledger.timed_as("inner", sum)
    outer = ledger.timed_as("outer", lambda: [inner(range(1000)) for _ in range(100)])
    outer()
    rows = {row["part"]: row for row in ledger.rows(1)}
    assert rows["inner"]["calls"] == 100
    assert rows["outer"]["us"] < rows["inner"]["us"]


@pytest.mark.parametrize(
    ("value", "aim", "noise", "expected"),
    [
        (1.01, 1.02, 0.001, aims.Outcome.MET),
        (1.024, 1.02, 0.001, aims.Outcome.MET),  # as it is printed
        (1.03, 1.02, 0.001, aims.Outcome.MISSED),
        (1.01, 1.02, 0.03, aims.Outcome.UNRESOLVED),  # noise as wide as the claim, and across the aim
        (1.50, 1.02, 0.03, aims.Outcome.MISSED),  # however wide: it is far away
        (1.07, 1.10, 0.04, aims.Outcome.MET),  # narrower than the claim
    ],
)
def test_an_aim_is_met_missed_or_not_resolved(value, aim, noise, expected):
    assert aims.judge(value, aim, noise) is expected


def results_of(**variants):
    numbers = {"ratio": 1.5, "low": 1.4, "high": 1.6}
    found = {MINUTE: numbers, turns.AGAIN: {"ratio": 1.0, "low": 0.99, "high": 1.01}, **variants}
    place = {"one read": 0.001, "statistics": 0.0012, "with histogram": 0.0019, "with full histogram": 0.003}
    each = {
        "date": "2026-11-30",
        "machine": {"torch": "2"},
        "rounds": 3,
        "habit_rounds": 2,
        "parameters": 4,
        "plain_ms": 3.0,
        "megabytes": 1.0,
        "largest_mb": 0.5,
        "in_place": {**place, "two numbers": 0.009},
        "stored": {"stored_bytes": 1000.0, "row_bytes": 79.0, "once_bytes": 2048.0},
        "memory": {"added_mb": 1.0, "batch_mb": 1.0, "steps_mb": 1.1, "code_mb": 9.0},
        "default": {
            "after": numbers,
            "own_s": 1.0,
            "duration_s": 50.0,
            "steps": 100,
            "start_steps": 20,
            "start_s": 0.5,
            "uncounted": 1.1,
        },
        "parts": {"plain_us": 100.0, "watched_us": 150.0, "rows": [{"part": "steps", "us": 40.0}]},
        "variants": found,
    }
    slow = {"median_ms": 183.2, "low_ms": 180.0, "high_ms": 190.0}
    return {"format": bench.FORMAT, "workloads": {TINY: each}, "startup": {"run: import torch adds": slow}}


def test_the_table_has_the_control_first_then_a_line_for_each_variant():
    quiet = {"ratio": 1.005, "low": 1.0, "high": 1.01}
    assert ratio_table(results_of(hook=quiet), quartiles=False).splitlines()[2:] == [
        "| plain loop, ms a step | 3 |",
        "| plain again | 1.00 |",
        "| whygrad, run of 1 minute | **1.50** (aim 1.10, missed) |",
        "| hook | 1.00 (not resolved) |",
    ]


def test_the_page_has_each_aim_beside_its_number():
    page = markdown(results_of())
    for text in (
        "**1.50 [1.40-1.60]** (aim 1.10, missed)",
        "1.20 (aim 1.5)",
        "**3.00** (aim 2.5, missed)",
        "0.13 (aim 0.25)",
        "79 (aim 80)",
        "1.0 (aim 1.5)",
        "1.0 s of 50 s (2.0%)",
        "| beside them | 10 |",
        "| run: import torch adds | **183** (aim 150, missed) | 180-190 |",
    ):
        assert text in page


def test_a_workload_that_is_measured_again_leaves_the_others_alone():
    first = bench.merged({"format": bench.FORMAT, "workloads": {}}, TINY, {"date": "a"})
    both = bench.merged(first, "MLP 784-512-512-10", {"date": "b"})
    again = bench.merged(both, TINY, {"date": "c"})
    assert again["workloads"] == {"MLP 784-512-512-10": {"date": "b"}, TINY: {"date": "c"}}
    assert list(again["workloads"]) == [name for name in WORKLOADS if name in again["workloads"]]


def test_results_in_another_format_are_not_mixed_in(tmp_path):
    (tmp_path / "results.json").write_text('{"workloads": {"x": {}}}', encoding="utf-8")
    assert bench.read(tmp_path) == {"format": bench.FORMAT, "workloads": {}}


def test_rounds_from_the_command_line_take_the_place_of_the_plan():
    assert plans.plan_of(TINY, quick=False, rounds=3).rounds == 3
    assert plans.plan_of(TINY, quick=False, rounds=None).rounds > 3


def test_the_page_of_the_results_says_what_they_are():
    results = json.loads((bench.FOLDER / "results.json").read_text(encoding="utf-8"))
    assert set(results["workloads"]) <= set(WORKLOADS)
    assert (bench.FOLDER / "results.md").read_text(encoding="utf-8") == markdown(results) + "\n"
