"""The zygote behaves like a fresh process for each call; stand-ins for torch keep these tests fast."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.zygote import Zygote

HERE = "tests.test_zygote"


@pytest.fixture(scope="module")
def zygote():
    with Zygote(modules=("colorsys", HERE)) as running:
        yield running


def show(arguments):
    print("out", *arguments, Path.cwd(), "colorsys" in sys.modules)
    print("err", file=sys.stderr)


def leave_a_mark(_arguments):
    seen = "mark" in vars(sys)
    sys.mark = True
    return int(seen)


def raise_an_error(_arguments):
    msg = "it broke"
    raise ValueError(msg)


def exit_with_3(_arguments):
    sys.exit(3)


def exit_with_a_sentence(_arguments):
    sys.exit("that was it")


def read_stdin(_arguments):
    print(repr(sys.stdin.read()))


def hang(_arguments):
    time.sleep(60)


def be_killed(_arguments):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_call_gets_its_arguments_folder_and_modules_and_its_output_is_kept(zygote, tmp_path):
    ran = zygote.call(f"{HERE}:show", ["a", "b c"], tmp_path)

    assert (ran.status, ran.stdout, ran.stderr) == (0, f"out a b c {tmp_path} True\n", "err\n")
    assert ran.folder == tmp_path


def test_no_call_sees_what_another_left(zygote, tmp_path):
    assert [zygote.call(f"{HERE}:leave_a_mark", [], tmp_path).status for _ in range(2)] == [0, 0]


@pytest.mark.parametrize(
    ("function", "status", "said"),
    [
        ("raise_an_error", 1, "ValueError: it broke"),
        ("exit_with_3", 3, ""),
        ("exit_with_a_sentence", 1, "that was it"),
        ("be_killed", -signal.SIGKILL, ""),
        ("no_such_function", 1, "AttributeError"),
    ],
)
def test_a_call_ends_as_a_process_would(zygote, tmp_path, function, status, said):
    ran = zygote.call(f"{HERE}:{function}", [], tmp_path)

    assert ran.status == status
    assert said in ran.stderr


def test_a_call_has_nothing_to_read(zygote, tmp_path):
    assert zygote.call(f"{HERE}:read_stdin", [], tmp_path).stdout == "''\n"


def test_a_call_that_hangs_is_ended_and_shows_where_it_was(zygote, tmp_path):
    ran = zygote.call(f"{HERE}:hang", [], tmp_path, timeout_s=0.5)

    assert ran.status == 1
    assert "in hang" in ran.stderr
    assert zygote.call(f"{HERE}:show", [], tmp_path).status == 0


def test_a_zygote_that_cannot_import_says_why(tmp_path):
    with Zygote(modules=("no_such_module",)) as broken:
        for _ in range(2):
            with pytest.raises(RuntimeError, match="no_such_module"):
                broken.call(f"{HERE}:show", [], tmp_path)
