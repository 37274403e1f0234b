"""What a rule is: an identity, a page and a check, all in one file.

A rule is a pure function from evidence to findings. Its module's docstring is its page (headings in `HEADINGS`), which
holds a bad and a good example that tests execute. Adding a rule is adding one file to this package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from whygrad.evidence import Evidence
from whygrad.model import Finding, Severity

HEADINGS: tuple[str, ...] = (
    "What it looks for",
    "Why it does not learn",
    "What it measures",
    "Example",
    "Fix",
    "When it is fine",
)
"""Headings (`## ...`) that every page has, in this order; `Options` and `See also` may follow."""

Check = Callable[[Evidence], Iterable[Finding]]
RanksCheck = Callable[[Sequence[Evidence]], Iterable[Finding]]
"""Of the evidence of every rank at once, by rank."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A registered rule."""

    slug: str  # its only name: the bad state, in kebab case
    title: str  # one line, a statement of the fault
    severity: Severity  # the most severe level it reports
    since: str  # version that brought it
    explains: frozenset[str]  # slugs of findings that are consequences of this one on the same tensors
    page: str  # Markdown
    check: Check
    check_ranks: RanksCheck | None = None  # takes the place of `check` where it is there


_REGISTRY: dict[str, Rule] = {}


def rule(
    slug: str, *, title: str, severity: Severity, since: str, explains: Iterable[str] = ()
) -> Callable[[Check], Check]:
    """Register the decorated function as the check of rule `slug`.

    Raises:
        ValueError: The slug is taken.
    """

    def register(check: Check) -> Check:
        if slug in _REGISTRY:
            msg = f"two rules are called {slug!r}"
            raise ValueError(msg)
        page = (sys.modules[check.__module__].__doc__ or "").strip()
        _REGISTRY[slug] = Rule(slug, title, severity, since, frozenset(explains), page, check)
        return check

    return register


def ranks_rule(
    slug: str, *, title: str, severity: Severity, since: str, explains: Iterable[str] = ()
) -> Callable[[RanksCheck], RanksCheck]:
    """Register the decorated function as the check of rule `slug`, which compares the ranks of a run.

    Raises:
        ValueError: The slug is taken.
    """

    def register(check_ranks: RanksCheck) -> RanksCheck:
        def check(evidence: Evidence) -> Iterable[Finding]:
            return check_ranks((evidence,))

        check.__module__ = check_ranks.__module__
        rule(slug, title=title, severity=severity, since=since, explains=explains)(check)
        _REGISTRY[slug] = replace(_REGISTRY[slug], check_ranks=check_ranks)
        return check_ranks

    return register
