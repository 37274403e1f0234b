"""The exceptions of autograd that end a program, as findings: what the rules about them share."""

from __future__ import annotations

from whygrad.evidence import Evidence
from whygrad.model import Finding, Place, Raised, Severity
from whygrad.rules._text import named

NO_GRADIENT = "does-not-require-grad"  # the loss does not require grad
GRAD_SWITCHES = ("no_grad", "set_grad_enabled", "inference_mode")  # `Raised.operation` where one of them did it
EMPTY_OPTIMIZER = "empty-parameter-list"
DDP_UNUSED = "ddp-unused"  # DistributedDataParallel waits for a gradient


def raised_for(evidence: Evidence, *reasons: str) -> Raised | None:
    """Return the exception that ended the program if it is one of these."""
    raised = evidence.info.raised
    return raised if raised is not None and raised.reason in reasons else None


def subject(raised: Raised) -> str:
    """Return how a sentence names the tensor that an exception is about."""
    return named((raised.tensor,)) if raised.tensor else "a tensor"


def raised_finding(slug: str, raised: Raised, place: Place | None, message: str, fix: str) -> Finding:
    """Return the finding about an exception; the places that it knows besides `place` are named too."""
    known = dict.fromkeys((place, raised.changed_at, raised.made_at, raised.place))
    places = tuple(each for each in known if each is not None)
    return Finding(
        rule=slug,
        severity=Severity.ERROR,
        tensors=(raised.tensor,) if raised.tensor else (),
        place=places[0] if places else None,
        message=message,
        fix=fix,
        evidence={"raised": raised.type, "reason": raised.reason, "operation": raised.operation},
        also=places[1:],
    )
