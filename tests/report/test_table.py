import math
import re

import pytest

from tests.report.builders import Shown, evidence, output, parameter, total
from tests.report.goldens import assert_golden
from whygrad.model import Role, Statistics, Total
from whygrad.report.table import COLUMNS, columns, rows, statistics_table

VALUES = [1.0, -2.0, 0.0, 3.0]
LONG = "encoder.layers.11.self_attention.in_projection.weight"


def model(**fields):
    broken = Total(Role.GRADIENT, 1, steps=2, statistics=Statistics(count=8, nans=6, infs=2))
    return evidence(
        "0.weight",
        "0.bias",
        LONG,
        totals=[total(0, VALUES), broken, total(0, [0.5], Role.OUTPUT_GRADIENT), total(0, [9.0], Role.OUTPUT)],
        outputs=[output(0, "0"), output(1, "1")],
        **fields,
    )


def test_columns_are_those_promised_and_equally_long():
    table = columns(model())

    assert COLUMNS == tuple(table)
    assert {5} == {len(column) for column in table.values()}
    assert ["parameter"] * 3 + ["output"] * 2 == table["kind"]


def test_statistics_of_a_single_step_are_those_of_the_tensor():
    row = rows(model())[0]

    assert ("0.weight", "parameter", 1) == (row.name, row.kind, row.steps)
    assert 0.5 == row.mean
    assert math.sqrt((0.25 + 6.25 + 0.25 + 6.25) / 3) == pytest.approx(row.std)
    assert 1.5 == row.mean_abs
    assert math.sqrt(14) == pytest.approx(row.l2)
    assert (3.0, 0.25, 0, 0) == (row.max_abs, row.zero_share, row.nans, row.infs)


def test_norm_is_that_of_one_step_however_many_were_recorded():
    four_steps = rows(evidence("w", totals=[total(0, VALUES * 4, steps=4)]))[0]

    assert rows(evidence("w", totals=[total(0, VALUES)]))[0].l2 == pytest.approx(four_steps.l2)


def test_nothing_recorded_is_nan_and_zero_steps():
    row = rows(model())[2]

    assert 0 == row.steps
    assert all(math.isnan(v) for v in (row.mean, row.std, row.mean_abs, row.l2, row.max_abs, row.zero_share))


def test_nonfinite_elements_are_counted_and_leave_no_number():
    row = rows(model())[1]

    assert (6, 2) == (row.nans, row.infs)
    assert math.isnan(row.mean)
    assert math.isnan(row.max_abs)


def test_outputs_show_the_gradient_not_the_value():
    assert 0.5 == rows(model())[3].mean


def test_rows_are_in_forward_order():
    given = (parameter("last", 0, order=5), parameter("never", 1, order=None), parameter("first", 2, order=1))

    assert ["first", "last", "never"] == [row.name for row in rows(evidence(given=given))]


def test_empty_run_has_empty_columns():
    assert {column: [] for column in COLUMNS} == columns(evidence())
    assert "gradient of parameters, 0 recorded steps\n" == statistics_table(Shown((evidence(),)))


@pytest.mark.parametrize("width", [80, 120])
def test_table_as_text(width):
    text = statistics_table(Shown((model(),)), width=width)

    assert_golden(text, f"table-{width}.txt")
    assert max(map(len, text.splitlines())) <= width


def test_colour_changes_no_word():
    run = Shown((model(),))

    assert statistics_table(run) == re.sub(r"\x1b\[[0-9;]*m", "", statistics_table(run, color=True))
    assert "\x1b" in statistics_table(run, color=True)


def test_hostile_names_do_nothing():
    text = statistics_table(Shown((evidence("\x1b[2J[red]\n"),)))

    assert all(line.isprintable() for line in text.splitlines())
    assert "[red]" in text
