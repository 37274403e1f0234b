import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whygrad.report.names import Group, group

LAYERS = [
    f"encoder.layers.{i}.{part}"
    for i in range(12)
    for part in ("attn.q.weight", "attn.k.weight", "attn.out.bias", "mlp.weight")
]


def patterns(names, universe):
    return [g.pattern for g in group(names, universe)]


def test_no_names_make_no_groups():
    assert () == group([], ["0.weight"])


def test_one_name_stays_as_it_is():
    assert (Group("head.weight", 1),) == group(["head.weight"], ["head.weight"])


def test_repeated_layers_become_one_pattern():
    attention = [name for name in LAYERS if ".attn." in name]

    assert (Group("encoder.layers.0-11.attn.*", 36),) == group(attention, LAYERS)


def test_star_needs_every_parameter_under_the_prefix():
    missing_one = [name for name in LAYERS if ".attn." in name and name != "encoder.layers.3.attn.out.bias"]

    assert ["encoder.layers.0-2,4-11.attn.*", "encoder.layers.3.attn.q.weight", "encoder.layers.3.attn.k.weight"] == (
        patterns(missing_one, LAYERS)
    )


def test_whole_model_is_a_lone_star():
    assert (Group("*", 48),) == group(LAYERS, LAYERS)


def test_names_outside_the_universe_are_never_covered_by_a_star():
    assert ["maps", "codes"] == patterns(["maps", "codes"], [])
    assert ["0.*", "0.hidden"] == patterns(["0.weight", "0.bias", "0.hidden"], ["0.weight", "0.bias", "2.weight"])


def test_gaps_are_listed():
    names = [f"blocks.{i}.norm.weight" for i in (0, 1, 2, 5, 9, 10)]
    universe = [f"blocks.{i}.norm.{kind}" for i in range(12) for kind in ("weight", "bias")]

    assert ["blocks.0-2,5,9-10.norm.weight"] == patterns(names, universe)


def test_two_numbers_in_one_name_are_joined_from_the_right():
    names = [f"blocks.{i}.mlp.{j}.weight" for i in range(3) for j in (0, 2)]
    universe = [*names, *(name.replace("weight", "bias") for name in names)]

    assert ["blocks.0-2.mlp.0,2.weight"] == patterns(names, universe)


def test_first_seen_stays_first():
    assert ["z.weight", "a.weight"] == patterns(["z.weight", "a.weight"], ["z.weight", "a.weight", "m.weight"])


def test_repeated_names_count_once():
    assert (Group("a", 1),) == group(["a", "a"], ["a", "b"])


@pytest.mark.parametrize("name", ["007.weight", "\u0663.weight", "..", "", "-1.weight", "9" * 5000])
def test_what_only_looks_like_a_number_is_kept_as_text(name):
    assert (Group(name, 1),) == group([name], [name, "other"])


def test_one_of_a_name_and_of_what_lies_below_it():
    assert ["a", "a.b"] == patterns(["a", "a.b"], ["a", "a.b", "c"])


def _matches(pattern, name):
    parts = pattern.split(".")
    if parts[-1] == "*":
        head, rest = parts[:-1], name.split(".")[: len(parts) - 1]
        return len(name.split(".")) >= len(parts) and all(map(_part_matches, head, rest))
    return len(parts) == len(name.split(".")) and all(map(_part_matches, parts, name.split(".")))


def _part_matches(pattern, part):
    if not re.fullmatch(r"\d+([-,]\d+)+", pattern):
        return pattern == part
    spans = [span.split("-") for span in pattern.split(",")]
    return part.isdecimal() and any(int(span[0]) <= int(part) <= int(span[-1]) for span in spans)


NAMES = st.lists(st.sampled_from(["0", "1", "2", "3", "10", "attn", "weight", "bias"]), min_size=1, max_size=4).map(
    ".".join
)


@settings(deadline=None)
@given(universe=st.sets(NAMES, min_size=1), data=st.data())
def test_every_name_belongs_to_exactly_one_pattern_and_no_other_name_does(universe, data):
    chosen = data.draw(st.lists(st.sampled_from(sorted(universe)), unique=True))

    groups = group(chosen, universe)

    assert len(chosen) == sum(g.count for g in groups)
    for name in universe:
        assert (name in chosen) == (sum(_matches(g.pattern, name) for g in groups) == 1)
        assert sum(_matches(g.pattern, name) for g in groups) <= 1
