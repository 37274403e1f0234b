"""Every rule's page is right: its bad example is found at the marked line, its good example is quiet."""

import pytest

from tests.examples_runner import run_example
from tests.rules.pages import examples, marked_lines
from whygrad.rules import all_rules


@pytest.fixture(params=all_rules().values(), ids=lambda rule: rule.slug)
def rule(request):
    return request.param


def test_the_bad_example_is_found_at_the_marked_line(rule, tmp_path):
    source = examples(rule)["bad"]

    found = run_example(source, tmp_path)

    assert [(f["rule"], f["line"]) for f in found[:1]] == [(rule.slug, *marked_lines(source, rule.slug))]
    assert found[0]["severity"] == rule.severity
    assert found[0]["evidence"]


def test_the_good_example_is_quiet(rule, tmp_path):
    found = run_example(examples(rule)["good"], tmp_path)

    assert [f["message"] for f in found if f["severity"] != "info"] == []
