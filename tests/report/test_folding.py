from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report.builders import a_rule, finding, place, rules
from whygrad.model import Severity
from whygrad.report.folding import arranged, fold, merged, ordered

ERROR, WARNING, INFO = Severity
PARAMETERS = frozenset({"0.weight", "0.bias", "2.weight", "2.bias"})
RULES = rules(
    a_rule("detached", explains=["zero-gradient", "not-updated"]),
    a_rule("zero-gradient", explains=["vanishing-gradient"]),
    a_rule("vanishing-gradient"),
    a_rule("not-updated"),
    a_rule("chicken", explains=["egg"]),
    a_rule("egg", explains=["chicken"]),
)


def slugs(found):
    return [f.rule for f in found]


def everything(found):
    return [f for top in found for f in (top, *top.consequences)]


# Merging


def test_findings_of_one_rule_at_one_place_are_one():
    first = finding(tensors=["a"], place=place(3), message="`a` got no gradient", also=(place(9),))
    second = finding(tensors=["b", "a"], place=place(3), message="`b` got no gradient", also=(place(9), place(10)))

    (joined,) = merged([first, second])

    assert ("a", "b") == joined.tensors
    assert "`a` (+1) got no gradient" == joined.message
    assert (place(9), place(10)) == joined.also


def test_findings_at_other_places_of_other_rules_or_severities_stay_apart():
    found = [
        finding("detached", place=place(3)),
        finding("detached", place=place(4)),
        finding("detached", place=place(3, file="model.py")),
        finding("no-step", place=place(3)),
        finding("detached", WARNING, place=place(3)),
    ]

    assert found == merged(found)


def test_findings_without_a_place_are_one_only_on_the_same_tensors():
    found = [finding(tensors=["a"]), finding(tensors=["b"]), finding(tensors=["a"])]

    assert found[:2] == merged(found)


def test_message_that_does_not_name_the_tensor_is_left_alone():
    found = [finding(tensors=[name], place=place(), message="no gradient") for name in "ab"]

    assert ["no gradient"] == [f.message for f in merged(found)]


# Folding


def test_explained_finding_on_the_same_tensor_goes_into_its_cause():
    effect = finding("zero-gradient", tensors=["0.weight"])
    cause = finding("detached", tensors=["0.weight", "0.bias"])

    (top,) = fold([effect, cause], RULES, PARAMETERS)

    assert "detached" == top.rule
    assert (effect,) == top.consequences


def test_explained_finding_on_other_tensors_stays():
    found = [finding("detached", tensors=["0.weight"]), finding("zero-gradient", tensors=["2.weight"])]

    assert 2 == len(fold(found, RULES, PARAMETERS))


def test_rule_that_explains_nothing_folds_nothing():
    found = [finding("vanishing-gradient", tensors=["a"]), finding("zero-gradient", tensors=["a"])]

    assert ["zero-gradient"] == slugs(fold(found, RULES, PARAMETERS))
    assert 2 == len(fold([finding("not-updated", tensors=["a"]), found[0]], RULES, PARAMETERS))


def test_cause_without_tensors_explains_all():
    found = [finding("detached"), finding("zero-gradient", tensors=["2.weight"])]

    assert ["detached"] == slugs(fold(found, RULES, PARAMETERS))


def test_error_on_the_whole_model_explains_findings_on_outputs():
    whole = finding("detached", tensors=sorted(PARAMETERS))
    on_output = finding("zero-gradient", tensors=["relu"])

    assert ["detached"] == slugs(fold([whole, on_output], RULES, PARAMETERS))
    assert 2 == len(fold([finding("detached", WARNING, tensors=sorted(PARAMETERS)), on_output], RULES, PARAMETERS))


def test_chain_ends_at_its_first_cause():
    found = [
        finding("vanishing-gradient", WARNING, tensors=["2.weight"]),
        finding("zero-gradient", tensors=["0.weight", "2.weight"]),
        finding("detached", tensors=["0.weight"]),
    ]

    (top,) = fold(found, RULES, PARAMETERS)

    assert "detached" == top.rule
    assert ["zero-gradient", "vanishing-gradient"] == slugs(top.consequences)


def test_cause_is_as_severe_as_the_worst_it_explains():
    found = [finding("detached", WARNING, tensors=["a"]), finding("zero-gradient", ERROR, tensors=["a"])]

    (top,) = fold(found, RULES, PARAMETERS)

    assert ("detached", ERROR) == (top.rule, top.severity)


def test_what_is_meant_does_not_excuse_what_is_broken():
    found = [finding("detached", INFO, tensors=["a"]), finding("zero-gradient", WARNING, tensors=["a"])]

    assert {"detached", "zero-gradient"} == set(slugs(fold(found, RULES, PARAMETERS)))


def test_info_explains_info():
    found = [finding("detached", INFO, tensors=["a"]), finding("zero-gradient", INFO, tensors=["a"])]

    assert ["detached"] == slugs(fold(found, RULES, PARAMETERS))


def test_of_findings_that_explain_each_other_the_more_severe_is_the_cause():
    found = [finding("chicken", WARNING, tensors=["a"]), finding("egg", ERROR, tensors=["a"])]

    (top,) = fold(found, RULES, PARAMETERS)

    assert "egg" == top.rule
    assert ["chicken"] == slugs(top.consequences)


def test_silenced_cause_takes_its_consequences_with_it():
    silenced = place(code="x = x.detach()  # whygrad: ignore[detached]")
    found = [finding("detached", tensors=["a"], place=silenced), finding("zero-gradient", tensors=["a"])]

    assert [] == fold(found, RULES, PARAMETERS)


def test_silenced_consequence_does_not_make_its_cause_worse():
    silenced = place(code="loss.backward()  # whygrad: ignore[zero-gradient]")
    found = [finding("detached", WARNING, tensors=["a"]), finding("zero-gradient", tensors=["a"], place=silenced)]

    (top,) = fold(found, RULES, PARAMETERS)

    assert (WARNING, ()) == (top.severity, top.consequences)


# Order


def test_severity_comes_first():
    found = [finding("a", INFO), finding("b", WARNING), finding("c", ERROR, tensors=["0.bias"])]

    assert ["c", "b", "a"] == slugs(ordered(found, RULES, PARAMETERS))


def test_cause_comes_before_consequence_even_if_it_affects_less():
    cause = finding("detached", tensors=["0.weight"])
    effect = finding("not-updated", tensors=["2.weight", "2.bias"])

    assert ["detached", "not-updated"] == slugs(ordered([effect, cause], RULES, PARAMETERS))


def test_larger_share_of_the_parameters_comes_first():
    small = finding("a", tensors=["0.weight"])
    large = finding("b", tensors=["2.weight", "2.bias"])
    none = finding("c", tensors=["maps", "codes", "more"])
    whole = finding("d")

    assert ["d", "b", "a", "c"] == slugs(ordered([none, small, large, whole], RULES, PARAMETERS))


def test_rules_that_explain_each_other_keep_a_fixed_order():
    found = [finding("egg", tensors=["0.bias", "0.weight"]), finding("chicken", tensors=["2.bias"])]

    assert ["egg", "chicken"] == slugs(ordered(found[::-1], RULES, PARAMETERS))


FINDINGS = st.lists(
    st.builds(
        lambda rule, severity, tensors, line: finding(
            rule, severity, tuple(sorted(tensors)), place=place(line) if line else None
        ),
        st.sampled_from(sorted(RULES)),
        st.sampled_from(list(Severity)),
        st.sets(st.sampled_from([*sorted(PARAMETERS), "relu"])),
        st.integers(0, 3),
    ),
    max_size=10,
)


@settings(deadline=None)
@given(FINDINGS)
def test_no_finding_is_lost_or_doubled(found):
    joined = merged(found)

    kept = everything(fold(joined, RULES, PARAMETERS))

    def identity(f):
        return (f.rule, f.place is None, f.place and f.place.line, f.tensors)

    assert sorted(map(repr, map(identity, joined))) == sorted(map(repr, map(identity, kept)))
    for f in found:
        assert any(f.rule == k.rule and f.place == k.place and set(f.tensors) <= set(k.tensors) for k in kept)


@settings(deadline=None)
@given(FINDINGS, st.randoms(use_true_random=False))
def test_order_does_not_depend_on_the_order_the_rules_ran_in(found, random):
    joined = merged(found)
    shuffled = list(joined)
    random.shuffle(shuffled)

    assert ordered(fold(joined, RULES, PARAMETERS), RULES, PARAMETERS) == ordered(
        fold(shuffled, RULES, PARAMETERS), RULES, PARAMETERS
    )


@settings(deadline=None)
@given(FINDINGS)
def test_arranged_findings_never_get_more_severe_down_the_list(found):
    orders = [f.severity.order for f in arranged(found, RULES, PARAMETERS)]

    assert sorted(orders) == orders


@settings(deadline=None)
@given(FINDINGS)
def test_ordering_twice_changes_nothing(found):
    once = ordered(found, RULES, PARAMETERS)

    assert once == ordered(once, RULES, PARAMETERS)
