from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from whygrad.launch import ranks
from whygrad.model import RunInfo
from whygrad.runfile import reader
from whygrad.runfile.writer import RunWriter


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"):
        monkeypatch.delenv(name, raising=False)


def test_a_program_of_its_own_is_rank_0_of_1() -> None:
    assert (0, 1, 1) == (ranks.rank(), ranks.world_size(), ranks.local_world_size())
    assert re.fullmatch(rf"train-\d{{8}}T\d{{6}}-{os.getpid()}", ranks.folder_name("train"))


@pytest.mark.parametrize("text", ["", "-1", "one", "1.5"])
def test_a_variable_that_is_no_number_is_not_torchruns(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", text)

    assert 0 == ranks.rank()


def test_runs_are_written_where_reports_look_for_them(tmp_path: Path) -> None:
    assert reader.RUNS_FOLDER == ranks.RUNS_FOLDER
    assert ranks.run_file(tmp_path).suffix == reader.SUFFIX


def test_ranks_of_one_agent_share_a_folder_that_sorts_by_time() -> None:
    program = "from whygrad.launch.ranks import folder_name; print(folder_name('train'))"
    before = time.strftime("%Y%m%dT%H%M%S", time.gmtime(time.time() - 3600))

    names = {
        subprocess.run(
            [sys.executable, "-c", program], env=os.environ | {"RANK": str(rank)}, stdout=-1, text=True, check=True
        ).stdout.strip()
        for rank in (0, 1)
    }

    [name] = names
    assert re.fullmatch(rf"train-\d{{8}}T\d{{6}}-{os.getpid()}", name)
    assert before < name.split("-")[1]


def test_a_restart_by_the_agent_gets_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    first = ranks.folder_name("train")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")

    assert first.replace("train", "train.restart1") == ranks.folder_name("train")


def test_where_the_agents_start_is_unknown_its_port_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("MASTER_PORT", "29500")
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "")

    assert f"train-port29500-{os.getppid()}" == ranks.folder_name("train")


def test_waiting_ends_when_every_local_rank_has_ended(tmp_path: Path) -> None:
    first = RunWriter(tmp_path / "rank0.whygrad", RunInfo("train.py"))
    first.update_info(RunInfo("train.py", ended=True))
    first.close()

    def end_second() -> None:
        second = RunWriter(tmp_path / "rank1.whygrad", RunInfo("train.py"))
        second.update_info(RunInfo("train.py", ended=True))
        second.close()

    timer = threading.Timer(0.3, end_second)
    timer.start()
    began = time.monotonic()
    ranks.wait_for(2, tmp_path, patience_s=20)
    timer.join()

    assert 0.2 < time.monotonic() - began < 15


def test_waiting_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "rank1.whygrad").touch()  # of a rank that was killed at once
    began = time.monotonic()

    ranks.wait_for(2, tmp_path, patience_s=0.3)

    assert 0.3 <= time.monotonic() - began < 5


def test_a_wait_is_cut_short_when_the_process_is_asked_to_end(tmp_path: Path) -> None:
    began = time.monotonic()

    ranks.wait_for(2, tmp_path, patience_s=20, hurry=[15])

    assert time.monotonic() - began < 5


def test_another_rank_learns_whether_the_first_one_has_ended(tmp_path: Path) -> None:
    assert not ranks.wait_for_first(tmp_path, patience_s=0.2)
    first = RunWriter(tmp_path / "rank0.whygrad", RunInfo("train.py"))
    assert not ranks.wait_for_first(tmp_path, patience_s=0.2)
    first.update_info(RunInfo("train.py", ended=True))
    first.close()

    assert ranks.wait_for_first(tmp_path, patience_s=20)


def test_one_rank_only_says_the_verdict(tmp_path: Path) -> None:
    assert [ranks.claim(tmp_path) for _ in range(3)] == [True, False, False]
    assert ranks.claim(tmp_path / "gone"), "where nothing can be written, to be heard twice beats not being heard"
