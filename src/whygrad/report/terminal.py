"""The verdict for a terminal or a log.

    whygrad: 1 error: 2 of 4 parameters do not learn
             200 steps (50 recorded), whygrad took 1.1 s of 62.0 s

    error unused-parameter: `head.weight` (+1) got no gradient in any of 200 steps
      --> train.py:41 in __init__
         40 |         self.body = nn.Linear(64, 64)
       > 41 |         self.head = nn.Linear(64, 10)
      tensors: head.* (2 parameters)
      numbers: steps 200, gradient steps 0
      fix:     use `head` in forward(), or delete it
      page:    whygrad rule unused-parameter

    run .whygrad/train-20261130T071200-4242
    next: whygrad rule unused-parameter

Written by hand, not with rich: a verdict has to be there in a tenth of a second, and names out of the user's program
can never be read as markup.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from whygrad.evidence import Evidence
from whygrad.model import Finding, Place, RunInfo, Severity
from whygrad.report import names
from whygrad.report.verdict import headline
from whygrad.report.view import RunView, parameter_names
from whygrad.report.writing import clipped, number, paint, plural, printable, short_path, spot, where, wrapped

_MAX_GROUPS = 6  # tensor patterns shown per finding
_MAX_NUMBERS = 6  # evidence numbers shown per finding
_MAX_ALSO = 4  # further places shown per finding
_MAX_FULL = 10  # findings shown with source and numbers; further ones get their first line only
_INDENT = " " * 11  # continuation of a labelled line


def render(run: RunView, *, color: bool, width: int) -> str:
    """Return the verdict, ending with a newline.

    Without colours it has no control characters, and whygrad's own words and marks are ASCII.
    """
    lines = list(_head(run, color=color, width=width))
    for position, finding in enumerate(run.findings):
        full = position < _MAX_FULL and finding.severity is not Severity.INFO
        lines += ["", *_title(finding, color=color, width=width)]
        lines += _body(finding, run.evidence, color=color, width=width) if full else _brief(finding, color=color)
    if run.notes:
        lines += ["", "notes:"]
        lines += (line for note in run.notes for line in wrapped(note, width, first="  - ", rest="    "))
    lines += _tail(run)
    return "\n".join(lines) + "\n"


def _head(run: RunView, *, color: bool, width: int) -> Iterator[str]:
    worst = run.findings[0].severity if run.findings else None
    style = "good" if worst is None or worst is Severity.INFO else worst.value
    lead = "whygrad: "
    first, *rest = wrapped(headline(run), width, first=lead, rest=" " * len(lead))
    yield lead + paint(first.removeprefix(lead), style, color=color)
    yield from (paint(line, style, color=color) for line in rest)
    yield paint(" " * len(lead) + _facts(run.evidence.info, len(run.ranks)), "faint", color=color)


def _facts(info: RunInfo, ranks: int) -> str:
    """Return "200 steps (50 recorded), 4 ranks, whygrad took 1.1 s of 62.0 s"."""
    steps = plural(info.steps, "step")
    facts = [f"{steps} ({info.recorded_steps} recorded)" if info.steps else steps]
    if ranks > 1:
        facts.append(plural(ranks, "rank"))
    if info.duration_s > 0 and math.isfinite(info.own_s):
        facts.append(f"whygrad took {info.own_s:.1f} s of {info.duration_s:.1f} s")
    return ", ".join(facts)


def _title(finding: Finding, *, color: bool, width: int) -> Iterator[str]:
    lead = f"{finding.severity} {finding.rule}: "
    first, *rest = wrapped(finding.message, width, first=lead, rest="  ") or [lead]
    severity = paint(finding.severity.value, finding.severity.value, color=color)
    yield f"{severity} {paint(finding.rule, 'strong', color=color)}: {first.removeprefix(lead)}"
    yield from rest


def _brief(finding: Finding, *, color: bool) -> Iterator[str]:
    if finding.place is not None:
        yield _arrow(finding.place, color=color)


def _body(finding: Finding, evidence: Evidence, *, color: bool, width: int) -> Iterator[str]:
    if finding.place is not None:
        yield _arrow(finding.place, color=color)
        yield from _excerpt(finding.place, color=color, width=width)
    known = parameter_names(evidence)
    yield from _labelled("tensors", _tensors(finding, known), width)
    yield from _labelled("numbers", _numbers(finding), width)
    yield from _labelled("fix", finding.fix, width)
    yield from _labelled("also", _also(finding.also), width)
    yield from _labelled("explains", _consequences(finding.consequences, known), width)
    yield from _labelled("page", f"whygrad rule {finding.rule}", width)


def _labelled(label: str, text: str, width: int) -> list[str]:
    return wrapped(text, width, first=f"  {label + ':':<9}", rest=_INDENT) if text else []


def _arrow(place: Place, *, color: bool) -> str:
    return f"  {paint('-->', 'place', color=color)} {where(place)}"


def _excerpt(place: Place, *, color: bool, width: int) -> Iterator[str]:
    lines = place.excerpt or (((place.line, place.code),) if place.code else ())
    digits = max((len(str(line)) for line, _ in lines), default=0)
    for line, code in lines:
        mark, style = (">", "strong") if line == place.line else (" ", "faint")
        text = f"   {mark} {line:>{digits}} | {printable(code.rstrip())}".rstrip()
        yield paint(text if len(text) <= width else f"{text[: width - 2]}..", style, color=color)


def _tensors(finding: Finding, known: frozenset[str]) -> str:
    """Return the tensors grouped; nothing where the message names the only one."""
    if not finding.tensors or (len(finding.tensors) == 1 and f"`{finding.tensors[0]}`" in finding.message):
        return ""
    groups = names.group(finding.tensors, known)
    shown = [clipped(printable(group.pattern), 60) for group in groups[:_MAX_GROUPS]]
    if len(groups) > _MAX_GROUPS:
        shown.append(f"and {len(groups) - _MAX_GROUPS} more")
    counted = _counted(finding.tensors, known)
    return f"all {counted}" if shown == ["*"] else f"{', '.join(shown)} ({counted})"


def _counted(tensors: tuple[str, ...], known: frozenset[str]) -> str:
    return plural(len(tensors), "parameter" if known.issuperset(tensors) else "tensor")


def _numbers(finding: Finding) -> str:
    shown = [
        f"{key.replace('_', ' ')} {number(value)}"
        for key, value in finding.evidence.items()
        if isinstance(value, int | float)
    ]
    return ", ".join(shown[:_MAX_NUMBERS])


def _also(places: tuple[Place, ...]) -> str:
    more = [f"and {len(places) - _MAX_ALSO} more"] if len(places) > _MAX_ALSO else []
    return ", ".join([*map(spot, places[:_MAX_ALSO]), *more])


def _consequences(explained: Iterable[Finding], known: frozenset[str]) -> str:
    return ", ".join(f"{f.rule} ({_counted(f.tensors, known)})" if f.tensors else f.rule for f in explained)


def _tail(run: RunView) -> Iterator[str]:
    """Yield where the run file is and what to type next."""
    follow = [f"whygrad rule {run.findings[0].rule}"] if run.findings else []
    if run.path is not None:
        path = short_path(run.path)
        yield from ("", f"run {path}")
    elif follow:
        yield ""
    if follow:
        yield f"next: {'   '.join(follow)}"
