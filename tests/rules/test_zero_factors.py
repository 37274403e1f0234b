import pytest

from tests.rules.builders import event, line
from tests.rules.loss_builders import run
from whygrad.rules._zero_factors import zero_cause

FACTOR = {"place": line(29), "subject": "div", "shape": [64, 8], "parameters": [0]}
UNIT = {"place": line(21), "subject": "cosine_similarity", "shape": [100, 1, 32], "dim": 1, "parameters": [0]}


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (event("zero_factor", count=3, **FACTOR), "that is all zeros, from `div`"),
        (event("unit_normalisation", count=3, **UNIT), "`cosine_similarity` runs along dimension 1"),
    ],
)
def test_what_made_the_gradient_zero_is_named_with_its_line(seen, said):
    evidence = run(events=[seen], zero=True)

    cause = zero_cause(evidence, evidence.parameters)

    assert cause is not None
    assert cause.place == seen.place
    assert said in cause.what


@pytest.mark.parametrize("fields", [{"count": 1}, {"count": 3, "parameters": [7]}])
def test_what_was_seen_once_or_elsewhere_is_no_cause(fields):
    evidence = run(events=[event("zero_factor", **{**FACTOR, **fields})], zero=True)

    assert zero_cause(evidence, evidence.parameters) is None
