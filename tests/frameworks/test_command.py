"""`whygrad run` on an unchanged Lightning program, which imports the framework after the probe is on."""

from pathlib import Path

from tests.programs import run_plain, run_whygrad
from tests.rules.pages import marked_lines

PROGRAM = Path(__file__).with_name("programs") / "lightning_detach_in_training_step.py"
LAST_WORDS = """
print(sum(p.double().sum().item() for p in trainer.model.parameters()), torch.rand(1).item())
"""


def test_the_cause_is_found_in_the_users_line_and_nothing_else_changes(tmp_path):
    source = PROGRAM.read_text(encoding="utf-8") + LAST_WORDS

    without = run_plain(source, tmp_path)
    watched = run_whygrad(source, tmp_path)

    assert without.status == watched.status == 0, watched.stderr
    assert without.stdout == watched.stdout
    assert [(f["rule"], f["line"]) for f in watched.findings[:1]] == [("detached", *marked_lines(source, "detached"))]
    assert watched.report["run"]["steps"] == 24
