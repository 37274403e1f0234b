"""The benchmark works; what it measures is not judged here."""

from __future__ import annotations

import json

import pytest
import torch

from benchmarks import __main__ as bench
from benchmarks.habits import HABITS, is_installed
from benchmarks.table import markdown, ratio_table
from benchmarks.worker import in_place, train
from benchmarks.workloads import WORKLOADS, make

TINY = "tiny MLP 4-8-2"


def test_variants_take_turns_in_processes_of_their_own():
    found = bench.take_turns(TINY, ["plain", bench.EVERY], 1, overhead=0.02, warm_up=3)
    assert found["plain"]["ratio"] == 1.0
    assert found[bench.EVERY]["ratio"] > 1.0
    assert 0 < found[bench.EVERY]["stored_bytes"] < 1e6


@pytest.mark.filterwarnings("ignore:Full backward hook")
@pytest.mark.parametrize("habit", [habit for habit in HABITS if is_installed(habit) and habit != "wandb.watch"])
def test_the_hooks_of_each_habit_fire_and_their_numbers_are_checked(habit):
    workload = make(TINY)
    try:
        check, after_backward = HABITS[habit](workload)
        train(workload, after_backward)
        check()
    finally:
        torch.autograd.set_detect_anomaly(False)


def test_a_check_fails_where_a_hook_is_gone():
    workload = make(TINY)
    check, after_backward = HABITS["the lesson's hook"](workload)
    for parameter in workload.model.parameters():
        parameter._backward_hooks.clear()
    train(workload, after_backward)
    with pytest.raises(KeyError):
        check()


def test_kernels_are_measured_in_their_place():
    found = in_place(make(TINY), 1)
    assert set(found) == {"read pass", "statistics", "with histogram", "two numbers"}
    assert all(seconds > 0 for seconds in found.values())


def test_the_table_has_a_line_for_each_variant_and_a_column_for_each_workload():
    numbers = {
        "ratio": 1.5,
        "low": 1.4,
        "high": 1.6,
        "stored_bytes": 100.0,
        "stored_bytes_a_row": 80.0,
        "added_mb": 1.0,
    }
    place = {"read_ms": 1.0, "statistics": 1.2, "with histogram": 1.9, "two numbers": 9.0}
    each = {"plain_ms": 3.0, "megabytes": 1.0, "largest_mb": 0.5, "in_place": place}
    variants = dict.fromkeys(("whygrad", "plain again", "whygrad --every 1"), numbers)
    results = {"machine": {"torch": "2"}, "rounds": 3, "workloads": {TINY: {**each, "variants": variants}}}
    assert ratio_table(results, quartiles=False).splitlines()[2:] == [
        "| plain loop, ms a step | 3 |",
        "| whygrad | 1.50 |",
        "| whygrad --every 1 | 1.50 |",
    ]
    assert "1.50 (1.40-1.60, aim 1.10)" in markdown(results)


def test_the_page_of_the_results_says_what_they_are():
    results = json.loads((bench.FOLDER / "results.json").read_text(encoding="utf-8"))
    assert set(results["workloads"]) <= set(WORKLOADS)
    assert (bench.FOLDER / "results.md").read_text(encoding="utf-8") == markdown(results) + "\n"
