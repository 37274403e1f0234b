"""The first NaN or Inf is named with its line, though the step in which it arises is hardly watched."""

import json
import sys
from pathlib import Path

import pytest

from tests.programs import run
from tests.rules.pages import marked_lines

PROGRAMS = Path(__file__).parents[1] / "rules" / "programs"
LATE = ["nan_late_log_of_a_share", "nan_late_std_of_one", "nan_late_root_of_zero"]
EARLY = sorted(path.stem for path in PROGRAMS.glob("nan_*.py") if "late_" not in path.stem)


def watched_lightly(source, tmp_path, *options):
    """Return what is found where, after the first steps, one in about fifty is recorded."""
    (tmp_path / "train.py").write_text(source)
    command = [sys.executable, "-m", "whygrad", "run", "--overhead", "1e-9", *options, "--json", "found.json"]
    ran = run([*command, "train.py"], tmp_path)
    assert ran.status == 0
    return ran
