"""A read of `.grad` that gave None is reported once for each tensor, at the line that reads."""

from tests.rules.builders import check, event, evidence, line
from whygrad.model import Severity

SLUG = "intermediate-grad"
MADE = {"file": "train.py", "line": 4, "function": "forward", "code": "h = f(x)", "excerpt": [[4, "h = f(x)"]]}


def read(place=9, names=("hidden",), **fields):
    given = {
        "subject": names[0] if names else "",
        "backwards": 1,
        "grad_fn": "ReluBackward0",
        "shape": [2, 3],
        **fields,
    }
    return event("intermediate_grad_read", place=line(place), names=list(names), **given)


def run(*events):
    return check(SLUG, evidence(events=events))


def test_a_read_after_backward_is_an_error_at_the_reading_line():
    (finding,) = run(read(made_at=MADE, count=3))

    assert finding.severity is Severity.ERROR
    assert finding.tensors == ("hidden",)
    assert finding.place == line(9)
    assert [(place.line, place.excerpt) for place in finding.also] == [(4, ((4, "h = f(x)"),))]
    assert "`hidden`" in finding.message
    assert "ReluBackward0" in finding.message
    assert "retain_grad()" in finding.fix
    assert finding.evidence == {"reads": 3, "grad_fn": "ReluBackward0", "shape": [2, 3]}


def test_a_read_before_the_first_backward_says_nothing():
    assert run(read(backwards=0)) == []


def test_a_read_that_goes_on_after_the_first_backward_is_reported():
    assert len(run(read(backwards=0, count=5, first=0, last=4))) == 1


def test_a_tensor_that_retains_its_gradient_lacks_it_for_another_reason():
    assert run(read(retains_grad=True)) == []


def test_one_tensor_read_at_two_lines_is_one_finding():
    (finding,) = run(read(place=9), read(place=12))

    assert finding.place == line(9)
    assert finding.also == (line(12),)


def test_one_line_that_is_seen_under_two_names_is_one_finding():
    (finding,) = run(read(names=("maps", "act")), read(names=("act",), grad_fn=""))

    assert finding.tensors == ("maps", "act")


def test_names_and_lines_join_reads_transitively():
    (finding,) = run(read(3, ("a",)), read(5, ("b",)), read(5, ("a",)))

    assert finding.tensors == ("a", "b")
    assert finding.evidence["reads"] == 3


def test_two_tensors_at_two_lines_are_two_findings():
    assert [f.tensors for f in run(read(9, ("a",)), read(12, ("b",)))] == [("a",), ("b",)]


def test_nameless_tensors_at_different_lines_are_not_joined():
    found = run(read(9, ()), read(12, ()))

    assert [f.tensors for f in found] == [(), ()]
    assert "an intermediate tensor" in found[0].message


def test_a_read_known_from_the_warning_alone_has_fewer_facts():
    bare = event("intermediate_grad_read", place=line(9), subject="h", names=["h"], backwards=4)

    (finding,) = check(SLUG, evidence(events=(bare,)))

    assert finding.tensors == ("h",)
    assert finding.also == ()
