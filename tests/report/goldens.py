"""Whole outputs, compared with files under golden/. UPDATE_GOLDEN=1 in the environment writes them anew."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def assert_golden(text, name):
    """Compare text with a golden file; escape characters are stored as `\\e`, so that the files are readable."""
    file = FOLDER / name
    text = text.replace("\x1b", "\\e")
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
