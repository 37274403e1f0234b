import pytest

from tests.report.builders import finding, place
from whygrad.report.suppression import is_suppressed


@pytest.mark.parametrize(
    "code",
    [
        "x = x.detach()  # whygrad: ignore[detached]",
        "x = x.detach()  # whygrad: ignore[zero-gradient, detached]",
        "x = x.detach()  # whygrad: ignore[detached,zero-gradient]",
        "x = x.detach()  # whygrad: ignore",
        "x = x.detach()  #whygrad:ignore",
        "x = x.detach()  # noqa: F841  # whygrad: ignore[detached] on purpose",
        "x = x.detach()  # whygrad: ignore[zero-gradient]  # whygrad: ignore[detached]",
        "x = x.detach()  # whygrad: ignore, the teacher does not learn",
    ],
)
def test_comment_silences_the_rule(code):
    assert is_suppressed(finding("detached", place=place(code=code)))


@pytest.mark.parametrize(
    "code",
    [
        "",
        "x = x.detach()",
        "x = x.detach()  # whygrad: ignore[zero-gradient]",
        "x = x.detach()  # whygrad: ignore[detached-graph]",
        "x = x.detach()  # whygrad: ignore[]",
        "x = x.detach()  # whygrad: ignore[detached",
        "x = x.detach()  # whygrad: ignore [detached",
        "x = x.detach()  # whygrad: ignored",
        "x = x.detach()  # whygrad: ignore-this",
        "x = x.detach()  # ignore[detached]",
        "whygrad: ignore",
    ],
)
def test_other_comments_do_not(code):
    assert not is_suppressed(finding("detached", place=place(code=code)))


def test_finding_without_a_place_cannot_be_silenced():
    assert not is_suppressed(finding("detached"))


def test_line_is_found_in_the_excerpt_too():
    lines = ((40, "y = 1"), (41, "x = x.detach()  # whygrad: ignore[detached]"))

    assert is_suppressed(finding("detached", place=place(41, excerpt=lines)))


def test_neighbouring_lines_do_not_count():
    lines = ((40, "y = 1  # whygrad: ignore"), (41, "x = x.detach()"))

    assert not is_suppressed(finding("detached", place=place(41, excerpt=lines)))
