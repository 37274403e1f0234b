"""Run the README's example under whygrad and put what a person sees into the README.

`python -m docs.capture` writes the block that begins with `<!-- generated: diagnosis -->`; a test compares it with what
whygrad says today, times and run names aside.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from docs.generate import ROOT, block_pattern, fill

EXAMPLE = ROOT / "examples/plain_list.py"
README = ROOT / "README.md"
COLUMNS = 110
VARIABLE = (
    (re.compile(r"\.whygrad/[\w.-]+"), ".whygrad/RUN"),
    (re.compile(r"\d+ recorded"), "N recorded"),
    (re.compile(r"\d+ of \d+ backward passes|reached \d+, backward passes \d+"), "N backward passes"),
    (re.compile(r"\d+(\.\d+)?(?=%| m?s\b)"), "N"),
)
"""What differs between two runs of the same program, and what to put in its place before they are compared."""


def diagnosis(script: Path = EXAMPLE) -> str:
    """Return a command line and all that it prints, as a console block of Markdown."""
    with tempfile.TemporaryDirectory(prefix="whygrad-readme-") as folder:
        Path(folder, script.name).write_bytes(script.read_bytes())
        ran = subprocess.run(
            [sys.executable, "-m", "whygrad", "run", script.name],
            cwd=folder,
            env={**os.environ, "COLUMNS": str(COLUMNS), "NO_COLOR": "1", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        )
    return f"```console\n$ whygrad run {script.name}\n{ran.stdout.strip()}\n```"


def captured(readme: str) -> str:
    """Return the diagnosis that a README shows, "" where it shows none."""
    found = block_pattern("diagnosis").search(readme)
    return found[2] if found else ""


def scrub(text: str) -> str:
    """Return the text without what differs between two runs of the same program."""
    for pattern, stand_in in VARIABLE:
        text = pattern.sub(stand_in, text)
    return text


def main() -> int:
    """Write the README anew where whygrad no longer says what it shows."""
    readme, said = README.read_text(encoding="utf-8"), diagnosis()
    if scrub(captured(readme)) != scrub(said):
        README.write_text(fill(readme, {"diagnosis": said}), encoding="utf-8")
        print(README.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
