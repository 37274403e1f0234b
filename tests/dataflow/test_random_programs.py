"""Random programs against the truth: autograd tells what has a gradient, a nudge tells what the loss depends on."""

import textwrap

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dataflow.tracing import Trace, program
from whygrad.model import PathEnd as PathKind

LEAVES = ("p0", "p1", "p2")

# each makes a new value {new} from earlier ones {a} and {b}, all of shape (3,)
LIVE = (
    "{new} = {a} + {b}",
    "{new} = torch.tanh({a}) * {b}",
    "{new} = torch.cat([{a}, {b}]).view(2, 3).sum(0)",
    "{new} = torch.stack([x * 2 for x in {a}.unbind()]) - 3.1 * {b}",
    "{new} = ({a} * 1).add_({b})",
    "{new} = torch.zeros(3, dtype=torch.float64); {new}[1:] = {a}[1:]; {new}[0] = {b}.sum()",
    "{new} = torch.where(torch.tensor([True, False, True]), {a}, {b})",
    "{new} = make({a}, {b})",
    "{new} = Double.apply({a}) * {b}",
    "{new} = checkpoint(make, {a}, {b}, use_reentrant=False)",
    "holder.kept = {a} + 0; {new} = holder.kept / (1 + {b})",
)
CUTTING = (
    "{new} = {a}.detach() * {b}",
    "{new} = {a}.data + 1",
    "{new} = {b} * {a}.sum().item()",
    "{new} = {b} * (2 * float({a}.detach().sum()) + 1)",
    "{new} = torch.tensor({a}.tolist(), dtype=torch.float64) + {b}",
    "{new} = torch.from_numpy({a}.detach().numpy() * 2)",
    "with torch.no_grad(): {new} = {a} - 3.7 * {b}",
    "{new} = quiet({a}) + {b}",
    "{new} = torch.zeros(3, dtype=torch.float64); {new}.data.copy_({a})",
    "{new} = copy.deepcopy({a}.detach()) * 3",
    "{new} = torch.nn.Parameter({a}.detach()) * 2 + {b}",
    "{new} = torch.zeros(3, dtype=torch.float64); {new}.data = {a} * 1",
    "{new} = {b} + sum([x * x for x in {a}.tolist()])",
    "{new} = torch.as_tensor(np.cumsum({a}.detach().numpy())) * {b}",
    "holder.value = {a}.prod().item(); {new} = {b} - holder.value",
    "with torch.inference_mode(): {new} = {a}.exp()\n{new} = {new}.clone()",
)
HEAD = """
import copy
import numpy as np
import torch
from torch.utils.checkpoint import checkpoint
class holder:
    pass
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x
    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient
def make(a, b):
    c = a * 3
    return c.sin() + b
@torch.no_grad()
def quiet(a):
    return a.exp()
"""


@st.composite
def texts(draw):
    """A program's text; its last value is the loss."""
    known = list(LEAVES)
    lines = []
    for i in range(draw(st.integers(2, 8))):
        operation = draw(st.sampled_from(draw(st.sampled_from((LIVE, LIVE, CUTTING)))))
        a, b = draw(st.sampled_from(known[-4:])), draw(st.sampled_from(known))
        lines.append(operation.format(new=f"v{i}", a=a, b=b))
        known.append(f"v{i}")
    lines.append(f"loss = ({known[-1]} * {draw(st.sampled_from(known))}).sum()")
    return textwrap.dedent(HEAD) + "\n".join(lines) + "\n"


def run(code, nudged=None):
    generator = torch.Generator().manual_seed(1)
    space = {name: torch.rand(3, dtype=torch.float64, generator=generator) for name in LEAVES}
    if nudged:
        space[nudged] += 0.1
    for name in LEAVES:
        space[name].requires_grad_()
    exec(code, space)  # noqa: S102 - the texts are made above
    return space


@settings(max_examples=40, deadline=None)
@given(text=texts())
def test_the_answer_is_the_truth(tmp_path_factory, text):
    code = program(text, tmp_path_factory.mktemp("random") / "program.py")
    plain = run(code)
    depends = {name: not torch.equal(run(code, nudged=name)["loss"], plain["loss"]) for name in LEAVES}
    trace = Trace()
    with trace.on():
        space = run(code)
        if space["loss"].requires_grad:
            space["loss"].backward()
        else:
            trace.flow.note_backward([space["loss"]])
        answers = {name: trace.explain(space[name]).kind for name in LEAVES}
    trace.flow.switch_off()

    for name in LEAVES:
        if space[name].grad is not None:
            assert answers[name] is PathKind.REACHED, name
        elif depends[name]:
            assert answers[name] is PathKind.CUT, name
        else:
            assert answers[name] in (PathKind.IGNORED, PathKind.UNUSED), name
