"""What a row of the live view says."""

import math

from tests.page.runs import failing_run, matrices
from tests.report.builders import evidence, info, parameters
from whygrad.evidence import Evidence
from whygrad.live.rows import SPARK_STEPS, Order, arranged, loss_line, rows
from whygrad.model import Step


def shrinking(step):
    return 10.0**-step


def seen(sizes, steps=8):
    names = [f"p{i}.weight" for i in sizes]
    return Evidence(info=info(), parameters=parameters(*names), matrices=matrices(sizes, range(steps)), steps=())


def test_a_gradient_over_the_steps_falls_from_block_to_block():
    (row,) = rows(seen({0: shrinking}))

    assert row.spark == "".join(sorted(row.spark, reverse=True))
    assert len(set(row.spark)) == 8
    assert row.size == 10.0**-7
    assert math.isclose(row.ratio, 1e-3)


def test_holes_zeros_and_broken_numbers_have_marks_of_their_own():
    def odd(step):
        return [1.0, None, 0.0, math.nan][step]

    (row,) = rows(seen({0: odd}, steps=4))

    assert row.spark[1:] == "\u00b70!"
    assert math.isnan(row.size)


def test_a_long_run_keeps_to_the_width():
    (row,) = rows(seen({0: lambda _: 1.0}, steps=500))

    assert len(row.spark) == SPARK_STEPS


def test_the_worst_come_first():
    sizes = {0: lambda _: 1.0, 1: lambda _: 1e-6, 2: lambda _: None, 3: lambda _: math.nan}

    names = [row.name for row in arranged(rows(seen(sizes)), Order.WORST)]

    assert names == ["p3.weight", "p2.weight", "p1.weight", "p0.weight"]


def test_other_orders_and_a_filter():
    given = rows(seen({1: lambda _: 1.0, 0: lambda _: 2.0}))

    assert [r.name for r in arranged(given, Order.FORWARD)] == ["p1.weight", "p0.weight"]
    assert [r.name for r in arranged(given, Order.NAME)] == ["p0.weight", "p1.weight"]
    assert [r.name for r in arranged(given, Order.NAME, "P1")] == ["p1.weight"]


def test_the_loss_is_a_line_of_blocks_with_its_last_value():
    steps = tuple(Step(i, 0, 0.0, loss=value) for i, value in enumerate([4.0, 2.0, math.nan, 0.5]))

    line = loss_line(Evidence(info=info(), steps=steps), 40)

    assert line.endswith("loss 0.5")
    assert line[0] == "\u2588"
    assert line[2:4] == "!\u2581"
    assert loss_line(evidence(), 40) == "no loss yet"


def test_a_cut_parameter_says_so():
    found = {row.name: row.state for row in rows(failing_run().evidence)}

    assert found == {"body.weight": "learns", "head.weight": "cut"}
