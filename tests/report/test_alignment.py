from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report.builders import parameter
from whygrad.report.alignment import align


def model(**shapes):
    return [parameter(name.replace("_", "."), i, shape=shape) for i, (name, shape) in enumerate(shapes.items())]


def pairs(a, b):
    return [(p.name, q.name) for p, q in align(a, b).pairs]


def test_equal_models_align_by_name():
    a = model(l0_weight=(8, 4), l0_bias=(8,))

    assert [("l0.weight", "l0.weight"), ("l0.bias", "l0.bias")] == pairs(a, a)
    assert "2 parameters aligned by name" == align(a, a).sentence


def test_renamed_models_align_by_order_and_shape():
    a = model(fc1_weight=(8, 4), fc1_bias=(8,), fc2_weight=(2, 8))
    b = model(in_weight=(8, 4), in_bias=(8,), out_weight=(2, 8))

    assert [("fc1.weight", "in.weight"), ("fc1.bias", "in.bias"), ("fc2.weight", "out.weight")] == pairs(a, b)
    assert "0 parameters aligned by name, 3 by order and shape" == align(a, b).sentence


def test_inserted_normalisation_shifts_names_and_is_left_over():
    a = model(l0_weight=(16, 4), l2_weight=(16, 16), l4_weight=(2, 16))
    b = model(l0_weight=(16, 4), l1_weight=(16,), l3_weight=(16, 16), l4_weight=(16,), l6_weight=(2, 16))

    alignment = align(a, b)

    assert [("l0.weight", "l0.weight"), ("l2.weight", "l3.weight"), ("l4.weight", "l6.weight")] == pairs(a, b)
    assert ["l1.weight", "l4.weight"] == [p.name for p in alignment.only_b]
    assert "1 parameter aligned by name, 2 by order and shape, 2 only in the second" == alignment.sentence


def test_wider_models_align_by_name_alone():
    a = model(l0_weight=(16, 4), l2_weight=(2, 16))
    b = model(l0_weight=(64, 4), l2_weight=(2, 64))

    assert [("l0.weight", "l0.weight"), ("l2.weight", "l2.weight")] == pairs(a, b)


def test_nothing_in_common_is_all_left_over():
    alignment = align(model(a=(1,)), model(b=(2,)))

    assert () == alignment.pairs
    assert "0 parameters aligned by name, 1 only in the first, 1 only in the second" == alignment.sentence


def test_empty_models_align():
    assert () == align([], []).pairs


MODELS = st.dictionaries(st.sampled_from("abcdefgh"), st.tuples(st.integers(1, 2), st.integers(1, 2)), max_size=8).map(
    lambda shapes: model(**shapes)
)


@settings(deadline=None)
@given(MODELS, MODELS)
def test_every_parameter_is_paired_once_or_left_over(a, b):
    alignment = align(a, b)

    assert sorted(p.id for p in a) == sorted(p.id for p in (*(p for p, _ in alignment.pairs), *alignment.only_a))
    assert sorted(q.id for q in b) == sorted(q.id for q in (*(q for _, q in alignment.pairs), *alignment.only_b))
    assert len(alignment.pairs) == alignment.by_name + alignment.by_shape
