"""`whygrad rule [SLUG | --all]`: a rule's page; without a slug, the list of rules."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from whygrad.cli._common import Page, Parser, add_color, page, settings
from whygrad.config import nearest
from whygrad.errors import WhygradError
from whygrad.rules import Rule, all_rules

_USAGE = "[options] [SLUG | --all]"
_DESCRIPTION = "Print the page of a rule: what it looks for, why, and what to change. Without a slug, list the rules."


def main(words: list[str]) -> int:
    """Print the pages that were asked for, or the list of rules."""
    parser = Parser("rule", _USAGE, _DESCRIPTION)
    parser.add_argument("slug", nargs="?", metavar="SLUG", help="the rule's name, as findings give it")
    parser.add_argument("--all", action="store_true", help="print all pages")
    add_color(parser)
    arguments = parser.parse(words)
    shown = page(settings(arguments).color)
    rules = all_rules()
    if arguments.all:
        for rule in rules.values():
            _print_page(rule, shown)
    elif arguments.slug is None:
        sys.stdout.write(_list(rules))
    else:
        _print_page(_find(arguments.slug, rules), shown)
    return 0


def _find(slug: str, rules: Mapping[str, Rule]) -> Rule:
    if slug not in rules:
        msg = f"there is no rule `{slug}`{nearest(slug, rules)}"
        raise WhygradError(msg)
    return rules[slug]


def _list(rules: Mapping[str, Rule]) -> str:
    slugs = max(map(len, rules), default=0)
    levels = max((len(rule.severity) for rule in rules.values()), default=0)
    return "".join(f"{r.slug:<{slugs}}  {r.severity:<{levels}}  {r.title}\n" for r in rules.values())


def _print_page(rule: Rule, shown: Page) -> None:
    text = f"# {rule.slug}\n\n{rule.title}. Severity: {rule.severity}; since {rule.since}.\n\n{rule.page}\n"
    if not shown.color:
        sys.stdout.write(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console(width=shown.width, force_terminal=True).print(Markdown(text))
