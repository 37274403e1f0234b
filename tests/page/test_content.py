"""What the page says, before any browser."""

import base64
import hashlib
import json
import math
import re
import struct
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import pytest

from tests.page.runs import HOSTILE, failing_run
from tests.report.builders import finding, place
from whygrad.model import Severity
from whygrad.page import content
from whygrad.page.rendering import render
from whygrad.page.series import MAX_CELLS, packed, thinned
from whygrad.rules import all_rules


def unpacked(text):
    raw = base64.b64decode(text)
    return struct.unpack(f"<{len(raw) // 4}f", raw)


def embedded(html):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)[1])


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def tags(html):
    parser = Tags()
    parser.feed(html)
    return parser.found


def test_the_verdict_and_the_cause_come_before_everything_else():
    html = render(failing_run())
    body = html[html.index("<body>") :]

    order = [
        body.index(part) for part in ("<h1>", "`head.weight` is cut off", "train.py:41", "The whole model", "The run")
    ]

    assert order == sorted(order)
    assert "1 error: 1 of 2 parameters do not learn" in body


def test_the_line_of_a_finding_is_marked_in_its_excerpt():
    excerpt = ((40, "a = 1"), (41, "b = a.detach()"), (42, "c = b"))
    run = failing_run(findings=[finding("detached", place=place(41, excerpt=excerpt))])

    marked = re.findall(r'class="line marked">.*?</span> (.*?)\n', render(run))

    assert marked == ["b = a.detach()"]


def test_the_page_asks_for_nothing_from_outside():
    html = render(failing_run())

    fetching = [
        (tag, key) for tag, attributes in tags(html) for key in attributes if key in ("src", "srcset", "action")
    ]
    links = [attributes["href"] for _, attributes in tags(html) if "href" in attributes]

    assert fetching == []
    assert all(link.startswith(("#", "https://")) for link in links)
    (policy,) = [attributes["content"] for _, attributes in tags(html) if "http-equiv" in attributes]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy


def test_names_and_code_of_the_program_are_text_and_nothing_else():
    line = place(41, code=HOSTILE, function=HOSTILE, excerpt=((41, HOSTILE),))
    hostile = finding("detached", tensors=(HOSTILE,), message=HOSTILE, fix=HOSTILE, place=line, evidence={HOSTILE: 1})
    run = failing_run(names=("body.weight", HOSTILE), findings=[hostile], notes=[HOSTILE])

    html = render(run)

    plain = render(failing_run())
    assert [tag for tag, _ in tags(html) if tag == "img"] == []
    assert [tag for tag, _ in tags(html)].count("script") == [tag for tag, _ in tags(plain)].count("script")
    assert "{{ 7*7 }}" in html
    assert embedded(html)["parameters"][1]["name"] == HOSTILE


def test_what_was_not_recorded_is_a_hole_and_zero_is_not():
    run = failing_run()
    values = unpacked(content.data(run)["gradient"]["columns"]["rms"])
    steps = len(content.data(run)["gradient"]["steps"])

    assert values[0] == pytest.approx(1.0)
    assert all(math.isnan(value) for value in values[steps : 2 * steps])
    assert unpacked(packed([0.0, 1e300, -1e300])) == (0.0, math.inf, -math.inf)


def test_the_update_is_set_against_the_weight():
    values = unpacked(content.data(failing_run())["update"]["columns"]["update_ratio"])

    assert values[0] == pytest.approx(1e-3)


def test_many_steps_are_thinned_evenly_and_the_page_says_so():
    steps = thinned(range(5000), 300)

    assert len(steps) * 300 <= MAX_CELLS
    assert (steps[0], steps[-1]) == (0, 4999)
    gaps = [b - a for a, b in pairwise(steps)]
    assert max(gaps) <= 2 * min(gaps)
    run = failing_run(steps=1500)
    assert "1000 of 1500 recorded steps are shown" in render(run)
    assert "recorded steps are shown" not in render(failing_run())


def test_300_parameters_over_2000_recorded_steps_stay_below_6_megabytes():
    names = [f"encoder.layers.{i // 12}.block.linear{i % 12}.weight" for i in range(300)]

    html = render(failing_run(names=names, steps=2000))

    assert len(html.encode()) < 6e6


def test_the_page_of_each_rule_that_spoke_is_inside():
    run = failing_run(findings=[finding(slug, Severity.WARNING) for slug in all_rules()])

    html = render(run)

    ids = {attributes.get("id") for _, attributes in tags(html)}
    for slug in all_rules():
        assert f"rule-{slug}" in ids
    inner = [attributes["href"][1:] for _, attributes in tags(html) if attributes.get("href", "").startswith("#")]
    assert set(inner) <= ids


def test_the_vendored_library_is_the_released_one():
    vendor = Path(str(files("whygrad.page"))) / "vendor"
    for line in (vendor / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((vendor / name).read_bytes()).hexdigest() == digest
