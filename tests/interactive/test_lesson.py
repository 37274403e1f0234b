"""The lesson that whygrad starts from: leaves keep their gradient, intermediates pass it on.

Its examples and its page say what they say because it is so: they are run, and what they print is compared.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import runpy
from pathlib import Path

import pytest
import torch
from torch import nn

from whygrad import explain, tap
from whygrad.interactive.kinds import Reason

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "leaf-and-intermediate.md"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


def lesson(*, retain=False):
    a = torch.tensor(2.0, requires_grad=True)
    b = a * 3
    if retain:
        b.retain_grad()
    return a, b, b + 1


def test_backward_fills_the_leaf_and_not_the_intermediate():
    a, b, c = lesson()
    c.backward()

    assert a.grad.item() == 3.0
    assert (explain(a).kind, explain(a).reason) == ("leaf", Reason.HAS_GRAD)
    assert (explain(b).kind, explain(b).reason) == ("intermediate", Reason.NOT_RETAINED)
    assert "`retain_grad()`" in explain(b).fix


def test_the_intermediate_has_no_gradient_in_torch_either():
    _, b, c = lesson()
    c.backward()

    with pytest.warns(UserWarning, match="not a leaf"):
        assert b.grad is None


def test_retain_grad_keeps_the_gradient_of_the_intermediate():
    a, b, c = lesson(retain=True)
    c.backward()

    assert (a.grad.item(), b.grad.item()) == (3.0, 1.0)
    assert (explain(b).kind, explain(b).reason) == ("intermediate", Reason.HAS_GRAD)
    assert explain(b).has_grad
    assert explain(b).retains_grad


def test_a_tap_reads_the_gradient_of_the_intermediate_and_keeps_nothing():
    _, b, c = lesson()
    with tap(b, "b") as tapped:
        c.backward()

    assert tapped.statistics.sum == 1.0
    assert not explain(b).has_grad


def test_taps_on_an_mlp_tell_what_hooks_by_hand_tell():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    by_hand = {}

    def record(name):
        def hook(g):
            by_hand[name] = g.abs().mean().item(), g.std().item()

        return hook

    for name, parameter in model.named_parameters():
        parameter.register_hook(record(name))
    taps = {name: tap(parameter, name) for name, parameter in model.named_parameters()}
    model(torch.randn(16, 4)).square().mean().backward()

    assert len(taps) == 4
    for name, tapped in taps.items():
        assert (tapped.statistics.mean_abs, tapped.statistics.std) == pytest.approx(by_hand[name], rel=1e-6)


def test_sigmoids_leave_the_input_layer_far_less_of_the_gradient_than_relus_do():
    def share_of_the_first_layer(activation):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(16, 32), activation(), nn.Linear(32, 32), activation(), nn.Linear(32, 4))
        taps = [tap(layer.weight, "weight") for layer in model if isinstance(layer, nn.Linear)]
        nn.functional.cross_entropy(model(torch.randn(64, 16)), torch.randint(4, (64,))).backward()
        first, _, last = (tapped.statistics.mean_abs for tapped in taps)
        return first / last

    relu, sigmoid = share_of_the_first_layer(nn.ReLU), share_of_the_first_layer(nn.Sigmoid)

    assert relu > 10 * sigmoid


@pytest.mark.parametrize(
    ("example", "lines"),
    [
        ("leaf_and_intermediate", ["a.grad = 3.0", "b.grad = 1.0", "mean of the gradient that passed = 1.0"]),
        ("hooks_on_an_mlp", ["0.weight         0.019296  0.030167        0.019296  0.030167"]),
        ("relu_against_sigmoid", ["ReLU: layer 1 gets 29% of what layer 3 gets; sigmoid: 0.8%"]),
    ],
)
def test_the_examples_run_and_say_what_they_are_there_for(example, lines, capsys):
    runpy.run_path(str(ROOT / "examples" / f"{example}.py"), run_name="__main__")

    printed = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line not in printed] == []


def differences(page):
    """Run the Python blocks of a page in one namespace; return those whose output is not the text block below them."""
    blocks = [*BLOCK.findall(page), ("text", "")]
    names = {}
    wrong = []
    for (language, code), (below, shown) in itertools.pairwise(blocks):
        if language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(PAGE), "exec"), names)  # noqa: S102 - a page is trusted as a test is
        expected = shown if below == "text" else ""
        if printed.getvalue() != expected:
            wrong.append(f"{code}\nprints\n{printed.getvalue()}\nnot\n{expected}")
    return wrong


def test_every_output_on_the_page_is_what_its_code_prints():
    page = PAGE.read_text(encoding="utf-8")

    assert page.count("```python") > 5
    assert differences(page) == []


def test_a_wrong_output_on_a_page_is_noticed():
    right = "```python\nx = 1\n```\n\n```python\nprint(x)\n```\n\n```text\n1\n```\n"

    assert differences(right) == []
    assert len(differences(right.replace("```text\n1", "```text\n2"))) == 1


def test_the_page_explains_every_reason():
    rows = re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)

    assert rows == [reason.value for reason in Reason]
