import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report.builders import Shown, evidence, finding, info, place
from tests.report.goldens import assert_golden
from whygrad.model import Raised, Severity
from whygrad.report.json_output import empty, render


def strictly(text):
    def refuse(constant):
        msg = f"{constant} is no JSON"
        raise ValueError(msg)

    return json.loads(text, parse_constant=refuse)


def shown(*found, notes=(), path=None, **fields):
    return Shown((evidence("0.weight", **fields),), found, notes, path)


def test_whole_document():
    effect = finding("zero-gradient", tensors=["0.weight"], place=None)
    found = finding(
        "detached",
        tensors=["0.weight"],
        place=place(31, "/home/me/train.py", function="forward", code="h = h.detach()"),
        message="`0.weight` gets no gradient",
        fix="do not detach",
        also=(place(40, "/usr/lib/other.py"),),
        consequences=(effect,),
    )
    path = Path(".whygrad/train-1")
    raised = Raised("ValueError", "no", place(50))

    text = render(shown(found, notes=("a note",), path=path, cwd="/home/me", raised=raised))

    assert_golden(text, "findings.json")
    strictly(text)


def test_schema_is_named_and_nothing_else_is_at_the_top():
    document = strictly(render(shown()))

    assert "whygrad.findings/1" == document["schema"]
    assert {"schema", "run", "notes", "findings"} == document.keys()


def test_finding_has_the_keys_of_the_contract():
    (found,) = strictly(render(shown(finding(place=place()))))["findings"]

    assert [
        "rule",
        "severity",
        "tensors",
        "file",
        "line",
        "function",
        "code",
        "message",
        "fix",
        "evidence",
        "also",
        "consequences",
    ] == list(found)


def test_finding_without_a_place_has_null_file_and_line():
    (found,) = strictly(render(shown(finding())))["findings"]

    assert (None, None) == (found["file"], found["line"])


def test_severities_are_their_words_and_the_order_is_kept():
    found = strictly(render(shown(*(finding(severity=severity) for severity in Severity))))["findings"]

    assert ["error", "warning", "info"] == [f["severity"] for f in found]


@pytest.mark.parametrize(
    ("file", "cwd", "written"),
    [
        ("/home/me/train.py", "/home/me", "train.py"),
        ("/home/me/src/train.py", "/home/me", "src/train.py"),
        ("/home/me/train.py", "/home/me/sub", "/home/me/train.py"),
        ("/home/metoo/train.py", "/home/me", "/home/metoo/train.py"),
        ("/home/me/train.py", "", "/home/me/train.py"),
        ("train.py", "/home/me", "train.py"),
        ("<stdin>", "/home/me", "<stdin>"),
    ],
)
def test_files_are_relative_to_the_working_directory_of_the_run(file, cwd, written):
    (found,) = strictly(render(shown(finding(place=place(3, file)), cwd=cwd)))["findings"]

    assert written == found["file"]


def test_numbers_that_json_lacks_become_strings():
    numbers = {"a": math.nan, "b": [math.inf, 1.5], "c": {"d": -math.inf}, "e": (None, True, 0, "x")}

    (found,) = strictly(render(shown(finding(evidence=numbers))))["findings"]

    assert {"a": "NaN", "b": ["Infinity", 1.5], "c": {"d": "-Infinity"}, "e": [None, True, 0, "x"]} == found["evidence"]


def test_unknown_objects_and_keys_become_strings():
    (found,) = strictly(render(shown(finding(evidence={1: Path("a"), None: {3}}))))["findings"]

    assert {"1": "a", "None": [3]} == found["evidence"]


def test_nonfinite_facts_of_the_run_are_strict_too():
    assert "NaN" == strictly(render(shown(duration_s=math.nan)))["run"]["duration_s"]


def test_run_without_a_file_says_why():
    document = strictly(empty(info(steps=0), ("the folder cannot be written",)))

    assert ([], ["the folder cannot be written"]) == (document["findings"], document["notes"])
    assert document["run"]["path"] is None


def test_empty_has_the_same_facts_of_the_run_as_a_whole_document():
    assert strictly(render(shown()))["run"].keys() == strictly(empty(info(), ()))["run"].keys()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(numbers=st.dictionaries(st.text(), JSON, max_size=4), name=st.text(), message=st.text())
def test_any_evidence_and_any_name_make_strict_ascii_json(numbers, name, message):
    text = render(shown(finding(tensors=[name], message=message, evidence=numbers)))

    (found,) = strictly(text)["findings"]
    assert text.isascii()
    assert ([name], message) == (found["tensors"], found["message"])
    assert numbers.keys() == found["evidence"].keys()
