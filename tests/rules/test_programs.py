"""Small programs of many settings: what whygrad finds first in each is the truth that its comment states.

`# truth: SLUG SEVERITY TENSOR...` is followed by a program in which one line ends with `# SLUG`: the finding's place.
`# truth: quiet` by one of which nothing but infos may be said.
"""

from pathlib import Path

import pytest

from tests.examples_runner import run_example
from tests.rules.pages import marked_lines

PROGRAMS = sorted(Path(__file__).with_name("programs").glob("*.py"))
TRUTH = "# truth: "
KNOWN_TO_FAIL: dict[str, str] = {}


def case(path):
    why = KNOWN_TO_FAIL.get(path.stem)
    return pytest.param(path, id=path.stem, marks=[pytest.mark.xfail(reason=why, strict=True)] if why else [])


def truth(source):
    return next(line.removeprefix(TRUTH).split() for line in source.splitlines() if line.startswith(TRUTH))


@pytest.mark.parametrize("program", [case(path) for path in PROGRAMS])
def test_what_is_found_first_is_the_truth(program, tmp_path):
    source = program.read_text(encoding="utf-8")
    slug, *expected = truth(source)

    found = run_example(source, tmp_path)

    if slug == "quiet":
        assert [f["message"] for f in found if f["severity"] != "info"] == []
    else:
        severity, *tensors = expected
        assert [(f["rule"], f["severity"], f["line"]) for f in found[:1]] == [
            (slug, severity, *marked_lines(source, slug))
        ]
        assert set(tensors) <= set(found[0]["tensors"])
