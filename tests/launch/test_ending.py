"""What whygrad does and says when a program has ended."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launch.conftest import Bench

NO_TORCH = "whygrad: the program never imported torch, so there is no training to explain.\n"
RAISES = "import torch\ndef inner():\n    raise ValueError('broken')\ninner()"


def read_json(bench: Bench, name: str = "out.json") -> dict[str, object]:
    document: dict[str, object] = json.loads((bench.folder / name).read_text(encoding="utf-8"))
    assert document["schema"] == "whygrad.findings/1"
    return document


def test_the_session_is_told_what_to_do_and_how_the_program_ended(bench: Bench) -> None:
    bench.write({"train.py": RAISES})

    bench.watched("train.py", "--lr", "0.1", options=("--every", "7", "--overhead", "0.5"))

    assert bench.log == ["start train.py ['--lr', '0.1'] 7 0.5", "finish ValueError('broken')"]


def test_a_module_is_called_as_one_calls_it(bench: Bench) -> None:
    bench.write({"train.py": "import torch"})

    bench.watched("-m", "train", "-x")

    assert bench.log[0] == "start -m train ['-x'] None 0.02"


@pytest.mark.parametrize("code", ["import sys; sys.exit(1)", "pass", "print(1)"])
def test_an_end_without_an_error_is_none(bench: Bench, code: str) -> None:
    bench.watched("-c", f"import torch; {code}")

    assert bench.log[-1] == "finish None"


def test_an_error_that_the_program_caught_did_not_end_it(bench: Bench) -> None:
    # What test runners and consoles do.
    program = """
import sys, torch
def failing(): raise ValueError("caught")
try:
    failing()
except ValueError:
    sys.last_type, sys.last_value, sys.last_traceback = sys.exc_info()
    sys.last_traceback = sys.last_traceback.tb_next
"""
    bench.write({"train.py": program})

    bench.watched("train.py")

    assert bench.log[-1] == "finish None"


def test_a_forked_child_drops_the_session_and_says_nothing(bench: Bench) -> None:
    bench.write({"train.py": "import os, sys, torch\nif os.fork() == 0:\n    sys.exit()\nos.wait()"})

    ran = bench.watched("train.py")

    assert bench.log[1:] == ["abandon", "finish None"]
    assert ran.stderr.count("whygrad: ") == 1


def test_the_verdict_comes_last_and_on_stderr(bench: Bench) -> None:
    program = """
import atexit, sys, threading, time, torch
atexit.register(lambda: print("from the exit handler"))
threading.Thread(target=lambda: (time.sleep(0.3), print("from the thread"))).start()
print("to the error stream", file=sys.stderr)
"""
    bench.write({"train.py": program})
    command = [sys.executable, "-m", "whygrad", "run", "train.py"]

    text = subprocess.run(
        command, cwd=bench.folder, env=os.environ | bench.env, stdout=-1, stderr=-2, text=True, check=True
    ).stdout

    assert text.splitlines()[:3] == ["to the error stream", "from the thread", "from the exit handler"]
    assert text.splitlines()[3].startswith("whygrad: ")
    assert "run .whygrad/train-" in text


def test_the_run_lies_in_the_folder_where_the_program_was_started(bench: Bench) -> None:
    bench.write({"scripts/train.py": "import os; os.chdir('scripts'); import torch"})

    ran = bench.watched("scripts/train.py", options=("--json", "out.json"))

    [file] = bench.folder.glob(".whygrad/train-????????T??????-*/rank0.whygrad")
    assert f"run {file.parent.relative_to(bench.folder)}\n" in ran.stderr
    assert (bench.folder / ".whygrad" / ".gitignore").read_text() == "*\n"
    assert read_json(bench)["run"]["path"] == str(file.parent)


def test_the_folder_can_be_chosen(bench: Bench) -> None:
    bench.watched("-c", "import torch", options=("-o", "runs/first"))

    assert (bench.folder / "runs" / "first" / "rank0.whygrad").exists()
    assert not (bench.folder / ".whygrad").exists()


def test_quiet_means_silent_but_the_findings_are_written(bench: Bench) -> None:
    ran = bench.watched("-c", "import torch", options=("-q", "--json", "out.json"))

    assert ran.stderr == ""
    assert "findings" in read_json(bench)


def test_a_program_without_torch_gets_one_honest_line(bench: Bench) -> None:
    ran = bench.watched("-c", "1 / 0", "x", options=("--json", "out.json"))

    document = read_json(bench)
    assert ran.stderr.endswith(NO_TORCH)
    assert document["findings"] == []
    assert document["notes"] == [NO_TORCH.removeprefix("whygrad: ").strip()]
    assert document["run"]["argv"] == ["x"]
    assert document["run"]["raised"]["type"] == "ZeroDivisionError"
    assert document["run"]["raised"]["message"] == "division by zero"
    assert not (bench.folder / ".whygrad").exists()


def test_an_older_findings_file_is_not_mistaken_for_a_new_one(bench: Bench) -> None:
    bench.write({"out.json": "{}"})

    ran = bench.watched("-c", "import os, torch; os._exit(4)", options=("--json", "out.json"))

    assert ran.status == 4
    assert not (bench.folder / "out.json").exists()


def test_findings_may_go_to_a_stream(bench: Bench) -> None:
    ran = bench.watched("-c", "print('mine')", options=("-q", "--json", "/dev/stderr"))

    assert ran.stdout == "mine\n"
    assert json.loads(ran.stderr)["findings"] == []


def test_findings_that_cannot_be_written_are_one_sentence(bench: Bench) -> None:
    (bench.folder / "there").mkdir()

    ran = bench.watched(
        "-c", "import shutil, sys, torch; shutil.rmtree('there'); sys.exit(3)", options=("--json", "there/out.json")
    )

    assert ran.status == 3
    assert f"whygrad: `{bench.folder}/there/out.json` cannot be written: No such file or directory\n" in ran.stderr


@pytest.mark.parametrize(
    ("level", "severity", "code", "status"),
    [
        ("error", "error", "pass", 1),
        ("error", "warning", "pass", 0),
        ("warning", "warning", "import sys; sys.exit()", 1),
        ("info", "info", "raise SystemExit(0)", 1),
        ("never", "error", "pass", 0),
        ("error", "error", "import sys; sys.exit(3)", 3),
        ("error", "error", "import sys; sys.exit('text')", 1),
        ("error", "error", "1 / 0", 1),
    ],
)
def test_fail_on_ends_a_clean_program_with_1(
    shim_bench: Bench, level: str, severity: str, code: str, status: int
) -> None:
    shim_bench.write({"train.py": f"import atexit, torch\natexit.register(print, 'bye')\nprint('hello')\n{code}"})

    ran = shim_bench.watched("train.py", options=("--fail-on", level), FINDING=severity)

    assert ran.status == status
    assert ran.stdout == "hello\nbye\n"
    assert "no-step" in ran.stderr


@pytest.mark.parametrize("status", [0, 3])
def test_a_session_that_cannot_start_leaves_the_program_alone(bench: Bench, status: int) -> None:
    ran = bench.watched(
        "-c", f"import torch; print('mine'); raise SystemExit({status})",
        options=("--json", "out.json", "--fail-on", "info"), SESSION_FAILS="1",
    )  # fmt: skip

    assert ran.status == status
    assert ran.stdout == "mine\n"
    assert ran.stderr == "whygrad: internal error: KeyError: 'broken' (the program was not affected)\n"
    assert read_json(bench)["notes"] == ["internal error: KeyError: 'broken' (the program was not affected)"]


def test_where_an_internal_error_came_from_is_shown_on_demand(bench: Bench) -> None:
    ran = bench.watched("-c", "import torch", SESSION_FAILS="1", WHYGRAD_DEBUG="1")

    assert "Traceback" in ran.stderr
    assert 'raise KeyError("broken")' in ran.stderr


def test_a_run_file_that_is_gone_is_one_sentence(bench: Bench) -> None:
    bench.write({"train.py": "import atexit, shutil, torch\natexit.register(shutil.rmtree, 'run')"})

    ran = bench.watched("train.py", options=("-o", "run"))

    assert ran.status == 0
    assert ran.stderr.startswith("whygrad: ")
    assert ran.stderr.count("\n") == 1


def test_where_no_file_can_be_made_the_run_goes_to_the_temporary_folder(bench: Bench, tmp_path: Path) -> None:
    bench.write({".whygrad": "a file stands where the folder of runs would be"})
    (tmp_path / "tmp").mkdir()

    ran = bench.watched("-c", "import torch", TMPDIR=str(tmp_path / "tmp"))

    [file] = (tmp_path / "tmp").glob("command-*/rank0.whygrad")
    assert "cannot be written: the run file is in" in ran.stderr.replace("\n    ", " ")
    assert str(file.parent) in ran.stderr


def test_a_program_may_bring_modules_of_our_names(bench: Bench) -> None:
    names = ("rich", "jinja2", "json_output", "terminal", "runfile", "model")
    bench.write({f"{name}.py": "raise RuntimeError('imported by mistake')" for name in names})
    bench.write({"train.py": "import torch"})

    ran = bench.watched("train.py", options=("--json", "out.json"))

    assert "internal error" not in ran.stderr
    assert "findings" in read_json(bench)


@pytest.mark.parametrize("closing", ["sys.stderr.close()", "os.close(2)", "sys.stderr = None", "sys.__stderr__ = None"])
def test_a_program_may_close_its_streams(bench: Bench, closing: str) -> None:
    ran = bench.watched("-c", f"import os, sys, torch; print('mine'); {closing}", options=("--json", "out.json"))

    assert (ran.status, ran.stdout) == (0, "mine\n")
    assert read_json(bench)["notes"] is not None


def test_whygrad_need_not_be_on_the_programs_path(bench: Bench, tmp_path: Path) -> None:
    import whygrad

    shutil.copytree(Path(whygrad.__file__).parent, tmp_path / "checkout" / "whygrad")
    bench.write({"train.py": "import sys, torch\nprint([path for path in sys.path if 'checkout' in path])"})

    # Started from the checkout's folder, which is on the path of `python -m whygrad` only.
    ran = subprocess.run(
        [sys.executable, "-m", "whygrad", "run", "-o", str(bench.folder / "run"), str(bench.folder / "train.py")],
        cwd=tmp_path / "checkout",
        env=os.environ | bench.env,
        capture_output=True,
        text=True,
        check=True,
    )

    assert ran.stdout == "[]\n"
    assert "run " in ran.stderr


def test_a_program_that_writes_its_rank_into_the_environment_is_still_the_one_that_speaks(bench: Bench) -> None:
    program = "import os; os.environ.update(RANK='1', WORLD_SIZE='2', LOCAL_WORLD_SIZE='2'); import torch"

    ran = bench.watched("-c", program)

    assert ran.stderr.startswith("whygrad: ")
    assert len(list(bench.folder.glob(".whygrad/*/rank0.whygrad"))) == 1


@pytest.mark.parametrize("failing", [{}, {"SESSION_FAILS": "1"}])
def test_ranks_other_than_0_are_silent(bench: Bench, failing: dict[str, str]) -> None:
    ran = bench.watched(
        "-c", "import torch; print('mine')", options=("--json", "out.json"), RANK="1", WORLD_SIZE="2", **failing
    )

    assert (ran.status, ran.stdout, ran.stderr) == (0, "mine\n", "")
    assert not (bench.folder / "out.json").exists()
    assert len(list(bench.folder.glob(".whygrad/*/rank1.whygrad"))) == (not failing)


def test_an_odd_loader_leaves_torch_alone(bench: Bench) -> None:
    program = """
import sys
from importlib.machinery import ModuleSpec

class Loader:
    __slots__ = ()
    def create_module(self, spec): return None
    def exec_module(self, module): print("loaded")

class Old:
    pass

class Finder:
    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, Loader()) if name == "torch" else None

sys.meta_path[0:0] = [Old(), Finder()]
sys.meta_path.insert(0, sys.meta_path.pop(next(i for i, f in enumerate(sys.meta_path) if hasattr(f, "arm"))))
import torch
"""
    bench.write({"train.py": program})

    ran = bench.watched("train.py")

    assert (ran.status, ran.stdout) == (0, "loaded\n")
    assert "the program was not affected" in ran.stderr
