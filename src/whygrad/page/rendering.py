"""The page of a run, as one string of HTML.

Names, messages and source lines come out of somebody else's program: the template escapes them, the data for the script
is JSON in which no tag can begin, and the content policy allows no script, style, image or request but what is here.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from whygrad.page import content
from whygrad.page.series import Track
from whygrad.report.view import RunView

_VENDOR = ("vendor/uPlot.iife.min.js", "vendor/uPlot.min.css")


def render(run: RunView, track: Track = iter) -> str:
    """Return the page; `track` may show how far the reading of the steps is."""
    values = content.data(run, track)
    return filled(
        "page.html",
        style=stylesheet(),
        script=_asset(_VENDOR[0]) + "\n" + _asset("page.js"),
        data=_as_json(values),
        headline=values["headline"],
        thinning=content.thinning(values),
        cards=content.cards(run),
        pages=content.rule_pages(run),
        tree=content.tree(run.evidence),
        facts=content.facts(run),
        notes=run.notes,
    )


def filled(template: str, *, style: str, script: str = "", **values: object) -> str:
    """Return a template filled with values, all escaped, under a policy that allows this style and script alone."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    policy = _policy(script, style)
    return environment.from_string(_asset(template)).render(policy=policy, style=style, script=script, **values)


def stylesheet() -> str:
    """Return the style of every page."""
    return _asset(_VENDOR[1]) + "\n" + _asset("page.css")


def _asset(name: str) -> str:
    return files("whygrad.page").joinpath(name).read_text("utf-8")


def _policy(script: str, style: str) -> str:
    scripts = f"script-src '{_digest(script)}'; " if script else ""
    return f"default-src 'none'; {scripts}style-src '{_digest(style)}'; base-uri 'none'; form-action 'none'"


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _as_json(values: dict[str, Any]) -> str:
    """Return JSON that is safe within a script element: no `<`, and none of the separators that end a line."""
    text = json.dumps(values, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
