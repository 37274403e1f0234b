"""Two processes, however they are started: each leaves a run file, and one verdict is said for both."""

import json
import sys

import pytest

from tests.programs import FINDINGS, SCRIPT, run
from whygrad.run import load

TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
WHYGRAD = ("whygrad", "run", "--json", FINDINGS, "--output", "run")
HEAD = """
import sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(call_wrapper):
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(rank)
    for step in range(10):
        if rank == 1 and step == 5 and sys.argv[1:] == ["fail"]:
            model(torch.randn(16, 4)).detach().sum().backward()
        called = model if call_wrapper else model.module
        loss = (called(torch.randn(16, 4)) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()
"""
UNDER_TORCHRUN = """
dist.init_process_group("gloo")
train(call_wrapper={called})
"""
SPAWNED = """

def work(rank, folder):
    dist.init_process_group("gloo", rank=rank, world_size=2, init_method=f"file://{{folder}}/rendezvous")
    train(call_wrapper={called})


if __name__ == "__main__":
    {start}
"""
STARTS = {
    "spawn": "mp.spawn(work, args=(sys.argv[1],), nprocs=2)",
    "processes": "fork = mp.get_context('fork')\n"
    "    started = [fork.Process(target=work, args=(rank, sys.argv[1])) for rank in range(2)]\n"
    "    [process.start() for process in started]\n"
    "    [process.join() for process in started]\n"
    "    assert [process.exitcode for process in started] == [0, 0]",
}


def launch(words, source, folder):
    (folder / SCRIPT).write_text(HEAD + source, encoding="utf-8")
    return run(words, folder)


@pytest.mark.parametrize("lead", [("--no-python", sys.executable, "-m"), ("-m",)], ids=["no-python", "module"])
def test_under_torchrun_rank_0_speaks_once_for_both(lead, tmp_path):
    ran = launch((*TORCHRUN, *lead, *WHYGRAD, SCRIPT), UNDER_TORCHRUN.format(called=False), tmp_path)

    assert ran.status == 0, ran.stderr
    assert ran.slugs == ["ddp-bypassed"]
    assert ran.report["run"]["ranks"] == [0, 1]
    assert ran.stderr.count("whygrad: ") == 1
    assert sorted(file.name for file in (tmp_path / "run").glob("*.whygrad")) == ["rank0.whygrad", "rank1.whygrad"]
    assert [finding.rule for finding in load(tmp_path / "run").findings] == ["ddp-bypassed"]


def test_a_rank_that_fails_alone_is_heard_though_rank_0_is_ended_by_torchrun(tmp_path):
    ran = launch(
        (*TORCHRUN, "--no-python", sys.executable, "-m", *WHYGRAD, SCRIPT, "fail"),
        UNDER_TORCHRUN.format(called=True),
        tmp_path,
    )

    assert ran.status != 0
    assert ran.stderr.count("whygrad: ") == 1
    assert "rank 1 raised RuntimeError" in ran.stderr
    assert json.loads((tmp_path / FINDINGS).read_text(encoding="utf-8"))["run"]["ranks"] == [0, 1]


@pytest.mark.parametrize("start", STARTS)
def test_processes_that_the_program_starts_itself_are_its_ranks(start, tmp_path):
    source = SPAWNED.format(called=False, start=STARTS[start])
    ran = launch((sys.executable, "-m", *WHYGRAD, SCRIPT, str(tmp_path)), source, tmp_path)

    assert ran.status == 0, ran.stderr
    assert ran.slugs == ["ddp-bypassed"]
    assert ran.report["run"]["ranks"] == [0, 1]
    assert ran.report["run"]["world_size"] == 2
    assert {"worker0.whygrad", "worker1.whygrad"} <= {file.name for file in (tmp_path / "run").iterdir()}
