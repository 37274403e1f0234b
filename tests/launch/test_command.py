from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from whygrad.config import Color, FailOn
from whygrad.launch import command
from whygrad.launch.options import RunOptions
from whygrad.launch.target import Kind, Target

OPTIONS = RunOptions(script="train.py", num_args=0, cwd="/home/me", folder="/home/me/run")


@pytest.mark.parametrize(
    ("command_line", "flags"),
    [
        ("python -m whygrad run train.py -u", ""),
        ("python /venv/bin/whygrad run train.py -O", ""),
        ("python -u -O -m whygrad run", "-u -O"),
        ("python -um whygrad", "-u"),
        ("python -OOBm whygrad", "-OOB"),
        ("python -W error -m whygrad", "-W error"),
        ("python -Werror -m whygrad", "-Werror"),
        ("python -Wmodule -m whygrad", "-Wmodule"),
        ("python -uW error -m whygrad", "-uW error"),
        ("python -X dev -Xutf8 -m whygrad", "-X dev -Xutf8"),
        ("python -X module -c code", "-X module"),
        ("python --check-hash-based-pycs always -m whygrad", "--check-hash-based-pycs always"),
        ("python -c code -m", ""),
        ("python - -u", ""),
        ("python", ""),
    ],
)
def test_the_interpreters_own_flags_are_told_from_the_rest(command_line: str, flags: str) -> None:
    assert tuple(flags.split()) == command.interpreter_flags(command_line.split())


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ({}, {"PYTHONPATH": "SHIM"}),
        ({"PYTHONPATH": ""}, {"PYTHONPATH": "SHIM", "WHYGRAD_PYTHONPATH": ""}),
        ({"PYTHONPATH": "a:"}, {"PYTHONPATH": "SHIM:a:", "WHYGRAD_PYTHONPATH": "a:"}),
    ],
)
def test_the_shim_goes_before_everything_else_on_the_path(before: dict[str, str], expected: dict[str, str]) -> None:
    shim = str(Path(command.__file__).with_name("shim"))

    made = command.environment({**before, "HOME": "/root"}, OPTIONS)

    assert json.loads(made.pop("WHYGRAD_RUN"))["script"] == "train.py"
    assert {**expected, "PYTHONPATH": expected["PYTHONPATH"].replace("SHIM", shim), "HOME": "/root"} == made


def test_options_come_back_as_they_were() -> None:
    options = RunOptions(
        script="a b\n'\".py",
        num_args=3,
        cwd="/w\udcffork",  # a name that is no UTF-8
        folder="/x",
        is_folder_chosen=True,
        json="/out",
        quiet=True,
        every=3,
        overhead=0.5,
        fail_on=FailOn.INFO,
        color=Color.ALWAYS,
        rank=1,
        world_size=4,
        local_world_size=2,
    )

    assert options == RunOptions.loads(options.dumps())


@pytest.mark.parametrize("num_args", [0, 2])
def test_arguments_are_the_last_words_of_the_command_line(num_args: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.orig_argv", ["python", "train.py", "--lr", "1"])

    options = RunOptions(script="train.py", num_args=num_args, cwd="", folder="")

    assert ("--lr", "1")[:num_args] == options.argv


def test_a_debugger_stays_with_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.gettrace", lambda: None)
    monkeypatch.delenv("WHYGRAD_LAUNCHER", raising=False)
    assert command.can_replace(OPTIONS) is (os.name == "posix")

    monkeypatch.setattr("sys.gettrace", lambda: print)
    assert command.can_replace(OPTIONS) is False


def test_a_command_that_is_too_long_for_the_system_runs_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.E2BIG, "Argument list too long")

    ran = []
    monkeypatch.setattr("sys.gettrace", lambda: None)
    monkeypatch.setattr("os.execve", refuse)
    monkeypatch.setattr("whygrad.launch.runner.run", lambda target, _: ran.append(target) or 0)
    target = Target(Kind.FILE, "train.py")

    assert 0 == command.start(target, OPTIONS)
    assert [target] == ran
