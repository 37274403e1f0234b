from tests.rules.builders import check, event, line
from tests.rules.loss_builders import call, run

SLUG = "scrambled-reshape"


def scrambled(**fields):
    shapes = {"before": [16, 5, 64], "after": [16, 64, 5], "parameters": [0], "learns": True}
    return event("scrambled_reshape", place=line(19), subject="reshape", **{"count": 3, **shapes, **fields})


def test_a_reshape_that_looks_like_a_transpose_is_found():
    (finding,) = check(SLUG, run(call("cross_entropy"), events=[scrambled()]))

    assert (finding.place, finding.tensors) == (line(19), ("head.weight",))
    assert "from [16, 5, 64] to [16, 64, 5]" in finding.message


def test_that_of_the_data_names_no_parameter():
    (finding,) = check(SLUG, run(call("cross_entropy"), events=[scrambled(parameters=[], learns=False)]))

    assert finding.tensors == ()


def test_one_that_was_seen_once_is_left_alone():
    assert check(SLUG, run(events=[scrambled(count=1)])) == []
