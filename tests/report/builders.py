"""Runs built by hand, for the tests of reports."""

from dataclasses import dataclass
from pathlib import Path

from whygrad.evidence import Evidence
from whygrad.model import Finding, Output, Parameter, Place, Role, RunInfo, Severity, Statistics, Total
from whygrad.rules import Rule

EXCERPT = (
    (40, "        self.body = nn.Linear(64, 64)"),
    (41, "        self.head = nn.Linear(64, 10)"),
    (42, ""),
)


@dataclass(frozen=True)
class Shown:
    """A run whose findings are given, not computed."""

    ranks: tuple
    findings: tuple = ()
    notes: tuple = ()
    path: Path | None = None

    @property
    def evidence(self):
        return self.ranks[0]


def parameter(name, id=0, **fields):
    fields = {"shape": (4, 8), "dtype": "float32", "steps": 10, "gradient_steps": 10, "optimizers": (0,), **fields}
    return Parameter(id=id, name=name, **fields)


def parameters(*names, **fields):
    return tuple(parameter(name, i, order=i, **fields) for i, name in enumerate(names))


def place(line=41, file="train.py", **fields):
    return Place(file, line, **fields)


def finding(rule="unused-parameter", severity=Severity.ERROR, tensors=(), **fields):
    fields = {"message": "it does not learn", "fix": "use it", "evidence": {"steps": 10}, **fields}
    return Finding(rule=rule, severity=severity, tensors=tuple(tensors), **fields)


def a_rule(slug, *found, explains=(), check=None):
    return Rule(slug, slug, Severity.ERROR, "0.1.0", frozenset(explains), "", check or (lambda _: found))


def rules(*given):
    return {rule.slug: rule for rule in given}


def info(**fields):
    return RunInfo(
        **{"script": "train.py", "steps": 10, "backwards": 10, "recorded_steps": 10, "ended": True, **fields}
    )


def evidence(*names, totals=(), outputs=(), given=None, **fields):
    return Evidence(
        info=info(**fields),
        parameters=parameters(*names) if given is None else tuple(given),
        outputs=tuple(outputs),
        totals=tuple(totals),
    )


def total(id, values, role=Role.GRADIENT, steps=1):
    """Return the totals of a tensor whose recorded steps held these finite values."""
    statistics = Statistics(
        count=len(values),
        sum=sum(values),
        sum_squares=sum(v * v for v in values),
        sum_abs=sum(map(abs, values)),
        max_abs=max(map(abs, values), default=0.0),
        zeros=sum(v == 0 for v in values),
    )
    return Total(role, id, steps=steps, statistics=statistics)


def output(id, name, order=0):
    return Output(id=id, name=name, module=id, order=order, shape=(2, 4), dtype="float32")
