"""Facts flow one way, and whoever only reads them never waits for torch."""

from __future__ import annotations

import json
import os
import pkgutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
READING_HALF = next(c for c in CONTRACTS if c["name"] == "The reading half never imports torch")["source_modules"]

TRAINING = """
import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.ones(4, 2)).sum().backward()
    optimizer.step()
"""


def lint_imports(folder, *options):
    return subprocess.run(
        [LINT_IMPORTS, "--no-cache", "--no-logo", *options], cwd=folder, capture_output=True, text=True, check=False
    )


def modules_loaded_by(code, folder, **env):
    """Return the names of all modules that a fresh process has after running `code` in `folder`."""
    tell = f"import json, sys\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    printed = subprocess.run(
        [sys.executable, "-c", tell],
        cwd=folder,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return set(json.loads(printed.stdout.splitlines()[-1]))


def modules_of(name):
    spec = find_spec(name)
    inside = pkgutil.walk_packages(spec.submodule_search_locations or [], prefix=f"{name}.")
    return [name, *(module.name for module in inside)]


def test_the_import_contracts_hold():
    linted = lint_imports(ROOT)

    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_a_broken_contract_is_noticed(tmp_path):
    (tmp_path / ".importlinter").write_text(
        "[importlinter]\nroot_package = whygrad\n[importlinter:contract:1]\nname = impossible\ntype = forbidden\n"
        "source_modules = whygrad.evidence\nforbidden_modules = whygrad.model\n",
        encoding="utf-8",
    )

    linted = lint_imports(tmp_path)

    assert linted.returncode == 1, linted.stdout
    assert "impossible BROKEN" in linted.stdout


@pytest.mark.parametrize("name", READING_HALF)
def test_the_reading_half_loads_no_torch(name, tmp_path):
    imports = "\n".join(f"import {module}" for module in modules_of(name))

    loaded = modules_loaded_by(imports, tmp_path)

    assert name in loaded
    assert not loaded & {"torch", "numpy"}


def test_a_module_that_does_load_torch_is_noticed(tmp_path):
    (tmp_path / "torch.py").touch()

    assert "torch" in modules_loaded_by("import whygrad.model, torch", tmp_path, PYTHONPATH=str(tmp_path))


def test_a_fresh_report_loads_no_torch(whygrad_run, tmp_path):
    whygrad_run(TRAINING)

    for output_format in ("text", "json"):
        words = ["report", "--output-format", output_format]
        loaded = modules_loaded_by(f"from whygrad.cli import main\nassert main({words}) in (0, 1)", tmp_path)

        assert "whygrad.runfile.reader" in loaded
        assert "torch" not in loaded
