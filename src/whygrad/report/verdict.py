"""From the evidence of a run to its verdict: the findings, and one line that says how many parameters do not learn.

2 errors, 1 warning: 12 of 52 parameters do not learn, 2 learn badly
nothing found: 52 of 52 parameters learn (200 steps)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from whygrad.errors import RunFileError
from whygrad.evidence import Evidence
from whygrad.model import Finding, Parameter, RunInfo, Severity
from whygrad.report.folding import arranged
from whygrad.report.view import RunView, model_parameters, parameter_names
from whygrad.report.writing import plural, printable
from whygrad.rules import Rule
from whygrad.uncollected import uncollected

_FEW_STEPS = 3  # below that many, silence about parameters without a gradient says nothing


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the rules say about a run."""

    findings: tuple[Finding, ...]  # most important first, consequences folded in, silenced ones dropped
    notes: tuple[str, ...]  # what was not observed, a sentence each


@uncollected()
def judge(ranks: Sequence[Evidence], rules: Mapping[str, Rule]) -> Judgement:
    """Run every rule over every rank, and those that compare ranks over all of them at once.

    A rule that raises becomes a note. What several ranks show at one place is one finding; the numbers are those of the
    first rank that shows it, named in the evidence unless it is the first of all.

    Raises:
        RunFileError: The statistics of a step cannot be read.
    """
    found: list[Finding] = []
    failed: list[str] = []
    for rule, position, check in _checks(ranks, rules.values()):
        where = {"rank": ranks[position].info.rank} if position else {}
        try:
            found += (replace(f, evidence={**f.evidence, **where}) for f in check())
        except RunFileError:
            raise  # no fault of the rule: statistics are read when they are asked for
        except Exception as error:
            failed.append(f"rule `{rule.slug}` failed: {type(error).__name__}: {error}")
    parameters = parameter_names(ranks[0]) if ranks else frozenset[str]()
    notes = (*_unobserved(ranks), *failed)
    return Judgement(arranged(found, rules, parameters), tuple(dict.fromkeys(notes)))


def _checks(
    ranks: Sequence[Evidence], rules: Iterable[Rule]
) -> Iterator[tuple[Rule, int, Callable[[], Iterable[Finding]]]]:
    """Yield each rule with the position of the rank that it looks at, 0 for all of them, and its check."""
    for rule in rules:
        if rule.check_ranks is not None:
            yield rule, 0, partial(rule.check_ranks, ranks)
        else:
            yield from ((rule, position, partial(rule.check, evidence)) for position, evidence in enumerate(ranks))


def findings(evidence: Evidence, rules: Mapping[str, Rule]) -> tuple[Finding, ...]:
    """Return the findings of one rank, most important first, consequences folded in, silenced ones dropped."""
    return judge((evidence,), rules).findings


def _unobserved(ranks: Sequence[Evidence]) -> Iterator[str]:
    for position, evidence in enumerate(ranks):
        known = ranks[0].info.notes if position else ()
        yield from (
            f"rank {evidence.info.rank}: {note}" if position else note
            for note in evidence.info.notes
            if note not in known
        )
    for evidence in ranks:
        if not evidence.info.ended:
            yield _unfinished(evidence.info)
    world = max((evidence.info.world_size for evidence in ranks), default=0)
    if len(ranks) < world:
        yield f"only {plural(len(ranks), 'rank')} of {world} left a run file"


def _unfinished(info: RunInfo) -> str:
    who = f"rank {info.rank}" if info.world_size > 1 else "the run"
    return f"{who} did not end, or still runs: {plural(info.steps, 'step')} were written up to its last flush"


def headline(run: RunView) -> str:
    """Return how many parameters do not learn, in one line."""
    counts = Counter(finding.severity for finding in run.findings)
    infos = plural(counts[Severity.INFO], "info") if counts[Severity.INFO] else ""
    loud = [plural(counts[s], s.value) for s in (Severity.ERROR, Severity.WARNING) if counts[s]]
    if loud:
        line = _with_tail(", ".join([*loud, infos] if infos else loud), _sick(run))
    elif not run.findings and not _trained(run.evidence.info):
        line = _untrained(run.evidence.info)
    else:
        line = _with_tail(_quiet(run.evidence, infos), _healthy(run.evidence))
    return line + _raised(run.ranks)


def _quiet(evidence: Evidence, infos: str) -> str:
    """Return what no error and no warning means: nothing, where no parameter learns at all."""
    trained = [p for p in model_parameters(evidence) if p.optimizers and p.requires_grad]
    if trained and evidence.info.steps >= _FEW_STEPS and not any(p.gradient_steps for p in trained):
        return f"no cause found, {infos}" if infos else "no cause found"
    return f"nothing wrong found, {infos}" if infos else "nothing found"


def verdict_line(run: RunView) -> str:
    """Return the headline; where nothing is wrong, with the number of steps it rests on."""
    info = run.evidence.info
    quiet = all(finding.severity is Severity.INFO for finding in run.findings)
    rests_on = f" ({plural(info.steps, 'step')})" if quiet and _trained(info) and info.raised is None else ""
    return headline(run) + rests_on


def _with_tail(head: str, tail: str) -> str:
    return f"{head}: {tail}" if tail else head


def _trained(info: RunInfo) -> bool:
    return bool(info.steps or info.backwards or info.grad_calls)


def _untrained(info: RunInfo) -> str:
    if info.forwards:
        ran = plural(info.forwards, "forward pass", "forward passes")
        return f"no training was observed: {ran}, but no backward pass and no optimizer step"
    return "no training was observed: no model ran with grad enabled, no backward pass, no optimizer step"


def _raised(ranks: Sequence[Evidence]) -> str:
    """Return which exception ended the program, on the first rank that has one."""
    for position, evidence in enumerate(ranks):
        info = evidence.info
        if info.raised is not None:
            who = f"rank {info.rank}" if position else "the program"
            return f"; {who} raised {printable(info.raised.type)} after {plural(info.steps, 'step')}"
    return ""


def _sick(run: RunView) -> str:
    canonical = _canonical_names(run.evidence.parameters)
    broken = _named(run.findings, Severity.ERROR, canonical)
    weak = _named(run.findings, Severity.WARNING, canonical) - broken
    total = len(parameter_names(run.evidence) | broken | weak)
    if broken:
        further = f", {len(weak)} learn badly" if weak else ""
        return f"{_of(len(broken), total)} do not learn{further}"
    return f"{_of(len(weak), total)} learn badly" if weak else ""


def _canonical_names(parameters: Iterable[Parameter]) -> dict[str, str]:
    names = {alias: parameter.name for parameter in parameters for alias in parameter.aliases}
    return names | {parameter.name: parameter.name for parameter in parameters}


def _named(found: Iterable[Finding], severity: Severity, canonical: Mapping[str, str]) -> frozenset[str]:
    """Return the parameters that findings of a severity name; other tensors do not count."""
    return frozenset(
        canonical[name]
        for top in found
        for finding in (top, *top.consequences)
        if finding.severity is severity
        for name in finding.tensors
        if name in canonical
    )


def _healthy(evidence: Evidence) -> str:
    parameters = model_parameters(evidence)
    if not parameters:
        return ""
    held = any(parameter.optimizers for parameter in parameters)
    learning = sum(_learns(parameter, held=held) for parameter in parameters)
    done = "learn" if evidence.info.steps else "get a gradient, but no step was seen"
    lost = sum(_waits(parameter) for parameter in parameters)
    unexplained = f"; {plural(lost, 'parameter')} that an optimizer holds never got a gradient" if lost else ""
    return f"{_of(learning, len(parameters))} {done}{unexplained}"


def _waits(parameter: Parameter) -> bool:
    """Return whether a parameter that is to be trained got no gradient at any step."""
    trained = parameter.optimizers and parameter.requires_grad and parameter.steps
    return bool(trained and not parameter.gradient_steps)


def _learns(parameter: Parameter, *, held: bool) -> bool:
    moved = parameter.optimizers or parameter.changed_outside or not held
    return bool(parameter.gradient_steps and moved)


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole} parameters"
