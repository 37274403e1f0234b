"""The launcher with the real torch; few programs, for torch takes seconds to import."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.launch.conftest import Bench
from tests.programs import run

TRAINS = """
import hashlib, os, sys
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, index):
        assert "WHYGRAD_RUN" not in os.environ
        return torch.tensor([float(index)])

def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for method in ("fork", "spawn"):
        for x in DataLoader(Numbers(), 4, num_workers=1, shuffle=True, multiprocessing_context=method):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            print(method, loss.item().hex())
    weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    print(hashlib.sha256(weights + torch.get_rng_state().numpy().tobytes()).hexdigest())
    raise ValueError("at the end")

if __name__ == "__main__":
    main()
"""


@pytest.fixture
def real_bench(bench: Bench) -> Bench:
    """Return a bench without the stand-in torch."""
    bench.env["PYTHONPATH"] = ""
    return bench


def test_data_loaders_with_workers_do_as_under_python(real_bench: Bench) -> None:
    real_bench.write({"train.py": TRAINS})

    plain = real_bench.plain("train.py", flags=("-W", "error"))
    watched = real_bench.watched("train.py", flags=("-W", "error"), options=("--json", "out.json"))

    assert "at the end" in plain.stderr
    assert plain.stdout == watched.stdout
    assert plain.status == watched.status
    assert watched.stderr.startswith(plain.stderr)
    said = watched.stderr.removeprefix(plain.stderr)
    assert said.startswith("whygrad: ")
    assert 1 == said.count("whygrad: ")
    assert "raised ValueError after 4 steps" in " ".join(said.split())
    assert "internal error" not in said
    assert (real_bench.folder / "out.json").exists()


RANKS = """
import torch
from torch import nn
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.full((4, 2), rank + 1.0)).mean().backward()
    optimizer.step()
torch.distributed.destroy_process_group()
if rank == 1:
    import time
    time.sleep(1)
print("rank", rank, flush=True)
"""


def test_under_torchrun_each_rank_writes_its_file_and_rank_0_speaks_for_all(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RANKS)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    whygrad = ["--no-python", sys.executable, "-m", "whygrad", "run", "--json", "out.json"]

    ran = run([*launcher, *whygrad, "train.py"], tmp_path, env={"PYTHONWARNINGS": "ignore"})

    assert ran.status == 0
    assert ["rank 0", "rank 1"] == sorted(ran.stdout.splitlines())
    assert ["rank0.whygrad", "rank1.whygrad"] == sorted(file.name for file in tmp_path.glob(".whygrad/*/*.whygrad"))
    assert 1 == len(list(tmp_path.glob(".whygrad/train-*")))
    assert 1 == ran.stderr.count("whygrad: ")
    assert "2 ranks" in ran.stderr
    assert "did not end" not in ran.stderr
    assert (tmp_path / "out.json").exists()
