"""What a report needs of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from whygrad.evidence import Evidence
from whygrad.model import Finding, Parameter


class RunView(Protocol):
    """A run as reports see it; `whygrad.run.Run` is one."""

    @property
    def path(self) -> Path | None:
        """Return the folder or file it was read from; None: it was never written."""
        ...

    @property
    def evidence(self) -> Evidence:
        """Return the evidence of the lowest rank."""
        ...

    @property
    def ranks(self) -> tuple[Evidence, ...]:
        """Return the evidence of every rank that left a file, by rank."""
        ...

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the findings in the order to act on them."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what was not observed, a sentence each."""
        ...


def model_parameters(evidence: Evidence) -> tuple[Parameter, ...]:
    """Return the parameters of the program's models; where it has no model, every tensor that was meant to learn."""
    registered = tuple(p for p in evidence.parameters if p.registered)
    taught = {p.root for p in registered if p.optimizers or p.gradient_steps}
    of_taught = tuple(p for p in registered if p.root in taught)  # not a teacher that no optimizer holds
    return of_taught or registered or evidence.parameters


def parameter_names(evidence: Evidence) -> frozenset[str]:
    """Return the names of `model_parameters`."""
    return frozenset(p.name for p in model_parameters(evidence))
