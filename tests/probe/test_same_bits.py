"""The contract that nothing may break: same losses, weights, random numbers, stdout and status as without whygrad."""

import sys
from pathlib import Path

import pytest

from tests.programs import run

PROGRAM = Path(__file__).parent / "programs" / "same_bits.py"
MODELS = [
    "mlp",
    "cnn",
    "lstm",
    "transformer",
    "gan",
    "checkpointed",
    "autocast",
    "closure",
    "views",
    "manual",
    "scaled",
    "averaged",
]


@pytest.mark.parametrize("model", MODELS)
def test_a_training_computes_the_same_bits(tmp_path, model):
    plain = run([sys.executable, str(PROGRAM), model], tmp_path)
    watched = run([sys.executable, "-m", "whygrad", "run", "--json", "findings.json", str(PROGRAM), model], tmp_path)

    assert plain.status == watched.status == 0
    assert plain.stdout == watched.stdout
    assert len(plain.stdout.splitlines()) > 12
    notes = watched.report["notes"]
    assert not [note for note in notes if "switched off" in note]
    assert watched.report["run"]["steps"] >= 11  # a scaler may skip the first


@pytest.mark.parametrize("every", ["1", "5"])
@pytest.mark.parametrize("model", ["gan", "scaled", "averaged"])
def test_a_long_training_computes_the_same_bits(tmp_path, model, every):
    plain = run([sys.executable, str(PROGRAM), model, "130"], tmp_path)
    command = [sys.executable, "-m", "whygrad", "run", "--every", every, "--json", "findings.json", str(PROGRAM), model]
    watched = run([*command, "130"], tmp_path)

    assert plain.status == watched.status == 0
    assert plain.stdout == watched.stdout
    assert watched.report["run"]["steps"] >= 100
    assert watched.report["run"]["recorded_steps"] >= watched.report["run"]["steps"] // int(every)
    assert not [note for note in watched.report["notes"] if "switched off" in note]


def test_the_comparison_can_fail(tmp_path):
    source = PROGRAM.read_text().replace("random.seed(0)", "random.seed(0); torch.rand(1)")
    (tmp_path / "changed.py").write_text(source)

    plain = run([sys.executable, str(PROGRAM), "mlp"], tmp_path)
    changed = run([sys.executable, "changed.py", "mlp"], tmp_path)

    assert plain.stdout != changed.stdout
