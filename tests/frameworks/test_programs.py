"""Unchanged programs on Lightning, transformers' Trainer, accelerate and PEFT: what is found first is the truth.

`# truth: ...` is read as in `tests/rules/test_programs.py`. The programs run in forks of a process that has imported
the frameworks, which takes longer than training does.
"""

import json
from pathlib import Path

import pytest

from tests.examples_runner import RUN_FOLDER
from tests.programs import SCRIPT
from tests.rules.pages import marked_lines
from tests.rules.test_programs import truth
from tests.zygote import MODULES, Zygote
from whygrad.report import json_output
from whygrad.run import load

PROGRAMS = sorted(Path(__file__).with_name("programs").glob("*.py"))
FRAMEWORKS = ("lightning", "transformers", "transformers.trainer", "accelerate", "peft")


@pytest.fixture(scope="module")
def zygote():
    with Zygote((*MODULES, "whygrad.probe.session", *FRAMEWORKS)) as process:
        yield process


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_what_is_found_first_is_the_truth(program, zygote, tmp_path):
    source = program.read_text(encoding="utf-8")
    slug, *expected = truth(source)
    (tmp_path / SCRIPT).write_text(source, encoding="utf-8")

    ran = zygote.call("tests.examples_runner:watch", [SCRIPT, RUN_FOLDER], tmp_path)
    found = json.loads(json_output.render(load(tmp_path / RUN_FOLDER)))["findings"]

    if slug == "quiet":
        assert ran.status == 0, ran.stderr
        assert [f["message"] for f in found if f["severity"] != "info"] == []
    else:
        severity, *tensors = expected
        assert [(f["rule"], f["severity"], f["line"]) for f in found[:1]] == [
            (slug, severity, *marked_lines(source, slug))
        ]
        assert set(tensors) <= set(found[0]["tensors"])
