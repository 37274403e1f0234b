"""Every rule's page has the same shape, and its examples can be run."""

import re
from pathlib import Path

import pytest

from tests.rules.pages import examples, marked_lines
from whygrad.rules import all_rules
from whygrad.rules._base import HEADINGS

CORPUS = Path(__file__).parent.parent / "corpus/README.md"
FURTHER = ("Options", "See also")


def known_slugs():
    table = CORPUS.read_text(encoding="utf-8").partition("## The slugs")[2]
    cells = re.findall(r"^\| ([^|*]+) \|", table, flags=re.MULTILINE)
    return {slug.strip() for cell in cells for slug in cell.split(",")}


@pytest.fixture(params=all_rules().values(), ids=lambda rule: rule.slug)
def rule(request):
    return request.param


def test_the_slug_is_that_of_the_corpus_and_of_the_file(rule):
    assert rule.slug in known_slugs()
    assert rule.check.__module__.rpartition(".")[2] == rule.slug.replace("-", "_")


def test_the_page_opens_with_a_message_and_has_its_headings_in_order(rule):
    opening, *headings = re.split(r"^## ", rule.page, flags=re.MULTILINE)
    names = [heading.partition("\n")[0] for heading in headings]

    assert re.fullmatch(r"[^\n]*`[^\n]+\n+", opening), "one line that names a tensor or an optimizer"
    assert names[: len(HEADINGS)] == list(HEADINGS)
    assert names[len(HEADINGS) :] == [name for name in FURTHER if name in names]


def test_no_section_is_empty(rule):
    sections = re.split(r"^## .*\n", rule.page, flags=re.MULTILINE)

    assert all(section.strip() for section in sections)


def test_one_line_of_the_bad_example_is_marked_and_none_of_the_good_one(rule):
    found = examples(rule)

    assert sorted(found) == ["bad", "good"]
    assert len(marked_lines(found["bad"], rule.slug)) == 1
    assert rule.slug not in found["good"]


@pytest.mark.parametrize("kind", ["bad", "good"])
def test_examples_are_short_and_seeded(rule, kind):
    source = examples(rule)[kind]

    compile(source, f"{rule.slug}:{kind}", "exec")
    assert len(source.splitlines()) <= 30
    assert "torch.manual_seed(" in source


def test_examples_differ_in_few_lines(rule):
    found = examples(rule)
    bad, good = (set(found[kind].splitlines()) for kind in ("bad", "good"))

    assert 1 <= len(bad ^ good) <= 8


def test_links_lead_to_rules_that_exist(rule):
    links = re.findall(r"\[([\w-]+)\]\(([^)]+)\)", rule.page)
    inner = [(text, target) for text, target in links if "://" not in target]

    assert [(text, target) for text, target in inner if target != f"{text}.md" or text not in all_rules()] == []
    assert rule.slug not in {text for text, _ in links}


def test_what_it_explains_has_a_known_slug(rule):
    assert rule.explains <= known_slugs() - {rule.slug}


def test_the_title_is_one_line_without_a_full_stop(rule):
    assert re.fullmatch(r"[^\n]{10,80}[^.\n]", rule.title)
