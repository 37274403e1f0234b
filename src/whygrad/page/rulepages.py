"""A rule's page as HTML: its Markdown comes from this package, never from the program that was watched."""

from __future__ import annotations

import re

from whygrad.rules import all_rules

_LINK = re.compile(r'<a href="(?P<slug>[a-z0-9-]+)\.md">(?P<text>.*?)</a>')


def rule_page(slug: str) -> str:
    """Return the page of a rule; links to other rules' pages become plain words."""
    from markdown_it import MarkdownIt  # a third of the time that a page takes

    rule = all_rules()[slug]
    html: str = MarkdownIt("commonmark", {"html": False}).enable("table").render(rule.page)
    lowered = re.sub(r"<(/?)h2>", r"<\1h4>", html)
    return _LINK.sub(r"<code>\g<slug></code>", lowered)
