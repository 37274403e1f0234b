import math
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report.goldens import assert_golden
from whygrad.report.profile import Layer, picture

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def draw(layers, series=("A",), width=80, color=False):
    return [ESCAPES.sub("", line) for line in picture(layers, series, width=width, color=color)]


def bars(lines, mark="#"):
    return [line.count(mark) for line in lines[1:-1]]


def test_bars_grow_by_equal_lengths_per_power_of_ten():
    lengths = bars(draw([Layer(str(k), (10.0**k,)) for k in range(-4, 1)], width=60))

    differences = {b - a for a, b in pairwise(lengths[1:])}
    assert lengths == sorted(lengths)
    assert max(differences) - min(differences) <= 1


def test_largest_value_of_a_whole_decade_fills_its_column():
    lines = draw([Layer("a", (1e-3,)), Layer("b", (1.0,))], width=40)

    assert 40 - 1 - 11 == bars(lines)[1]


def test_smallest_value_still_has_a_mark_and_zero_has_none():
    assert [1, 0] == bars(draw([Layer("a", (1e-3,)), Layer("b", (0.0,))]))


def test_holes_nan_and_zero_are_told_apart():
    lines = draw([Layer("a", (None,)), Layer("b", (math.nan,)), Layer("c", (0.0,)), Layer("d", (1.0,))])

    assert ["-", "NaN", "0", "1.0e+00"] == [line.split()[-1] for line in lines[1:5]]
    assert [0, 0, 0] == bars(lines)[:3]


def test_infinite_value_fills_the_bar():
    lengths = bars(draw([Layer("a", (math.inf,)), Layer("b", (1.0,))], width=40))

    assert lengths[0] == max(lengths) == 40 - 1 - 11


def test_two_series_side_by_side():
    layers = [Layer(f"{2 * i}.weight", (1e-2 * 2**i, 1e-5 * 30**i), f"{i}x") for i in range(4)]

    assert_golden("\n".join(draw(layers, ("relu", "sigmoid"))) + "\n", "profile.txt")
    assert_golden("\n".join(picture(layers, ("relu", "sigmoid"), width=80, color=True)) + "\n", "profile-color.txt")


def test_blocks_are_finer_than_marks():
    layers = [Layer(str(i), (v,)) for i, v in enumerate((1.0, 1.1, 1.2, 10.0))]

    assert 3 > len(set(bars(draw(layers, width=20))[:3]))
    lengths = [line.split()[1] for line in draw(layers, width=20, color=True)[2:4]]
    assert lengths[0] != lengths[1]


def test_deep_models_are_thinned_out_and_say_so():
    lines = draw([Layer(f"layer{i}", (1.0,)) for i in range(100)])

    assert "(40 of 100 rows shown)" == lines[-1]
    assert lines[1].startswith("layer0 ")
    assert lines[40].startswith("layer99 ")


def test_no_layers_draw_an_empty_frame():
    assert 2 == len(draw([]))


def test_ascii_without_colour():
    assert "".join(draw([Layer("a", (3.7e-5,)), Layer("b", (0.9,))])).isascii()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_keep_to_the_width(width):
    layers = [Layer("encoder.layers.0.attention.projection.weight", (1.0, 1e-9), "1.2e+09x")]

    assert max(map(len, draw(layers, ("relu", "s" * 200), width))) <= width


VALUE = st.none() | st.floats(min_value=0.0)


@settings(deadline=None)
@given(st.lists(st.builds(Layer, st.text(), st.tuples(VALUE, VALUE)), max_size=50), st.integers(1, 200), st.booleans())
def test_any_values_and_names_can_be_drawn(layers, width, color):
    lines = draw(layers, ("A", "B"), width, color)

    assert all(line.isprintable() for line in lines)
