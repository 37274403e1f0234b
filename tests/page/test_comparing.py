"""Two runs on one page."""

import re

from tests.page.runs import HOSTILE, failing_run
from tests.page.test_content import tags
from tests.report.builders import finding
from whygrad.page.comparing import render_comparison
from whygrad.report.comparison import compare


def page(a, b, labels=("relu", "sigmoid")):
    return render_comparison(compare(a, b, labels), a.evidence, b.evidence)


def test_the_sentences_come_first_and_every_layer_has_two_bars():
    html = page(failing_run(), failing_run())

    assert html.index("nearest the input) gets about as much gradient") < html.index("<table")
    assert len(re.findall(r'<rect class="first"', html)) == len(re.findall(r'<rect class="second"', html)) == 2


def test_findings_are_new_gone_or_the_same():
    old, new = finding("detached", tensors=("body.weight",)), finding("dead-relu", tensors=("body.weight",))
    both = finding("no-step", tensors=("head.weight",))

    html = page(failing_run(findings=[old, both]), failing_run(findings=[new, both]))

    order = [
        html.index(words) for words in ("only with sigmoid", "dead-relu", "only with relu", "detached", "with both")
    ]
    assert order == sorted(order)


def test_the_losses_are_drawn_over_each_other():
    html = page(failing_run(), failing_run(steps=40))

    lines = re.findall(r'<polyline class="(\w+)" points="([^"]+)"', html)
    assert [name for name, _ in lines] == ["first", "second"]
    assert lines[0][1].split()[-1].split(",")[0] == "311.8"  # of 640: it has half as many steps
    assert "relu: 1 to 0.05" in html


def test_it_runs_no_script_and_names_stay_text():
    run = failing_run(names=(HOSTILE, "head.weight"), findings=[finding(message=HOSTILE, fix=HOSTILE)])

    html = page(run, failing_run(), labels=(HOSTILE, "b"))

    assert not {tag for tag, _ in tags(html)} & {"script", "img", "a"}
    (policy,) = [attributes["content"] for _, attributes in tags(html) if "http-equiv" in attributes]
    assert "script-src" not in policy
    assert policy.startswith("default-src 'none'")
