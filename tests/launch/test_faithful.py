"""Under whygrad a program prints, raises and ends as it does under plain python."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.launch.conftest import Bench
from tests.programs import Ran

_LIBRARIES = os.pathsep.join(entry for entry in sys.path if "site-packages" in entry or entry.endswith("src"))

PROGRAMS = {
    "ends": "import torch; print('done')",
    "without torch": "print('done')",
    "exits with a number": "import sys, torch; sys.exit(3)",
    "exits with a text": "import sys, torch; sys.exit('what went wrong')",
    "exits with nothing": "import torch; raise SystemExit",
    "exits from a function": "import sys, torch\ndef main(): sys.exit(5)\nmain()",
    "leaves at once": "import os, torch; print('now', flush=True); os._exit(4)",
    "is killed": "import os, signal, torch; os.kill(os.getpid(), signal.SIGTERM)",
    "aborts": "import os, torch; os.abort()",
    "raises": "import torch\n\ndef inner():\n    raise ValueError('broken')\n\ninner()",
    "raises before torch": "1 / 0",
    "raises with a cause": """
import torch
def load():
    try:
        {}["weights"]
    except KeyError as error:
        raise RuntimeError("no weights") from error
try:
    load()
except RuntimeError:
    raise OSError("not at all")
""",
    "raises a group": "import torch; raise ExceptionGroup('two', [ValueError(1), TypeError(2)])",
    "raises with a note": "import torch\ne = ValueError(1)\ne.add_note('read this')\nraise e",
    "is interrupted": "import os, signal, time, torch\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)",
    "has a syntax error": "import torch\nprint('no'\n",
    "is empty": "",
    "sets an excepthook": """
import sys, torch
sys.excepthook = lambda kind, value, trace: print("hook", kind, value, trace.tb_lineno, trace.tb_next, file=sys.stderr)
1 / 0
""",
    "has a broken excepthook": "import sys, torch\nsys.excepthook = lambda *a: 1 / 0\nraise ValueError('broken')",
    "raises in a thread": "import threading, torch\nt = threading.Thread(target=lambda: 1 / 0)\nt.start(); t.join()",
    "raises in an exit handler": "import atexit, torch\natexit.register(lambda: 1 / 0)\nprint('done')",
    "has exit handlers": """
import atexit, threading, time, torch
atexit.register(print, "first registered")
def work():
    time.sleep(0.2)
    print("thread done", flush=True)
threading.Thread(target=work).start()
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
atexit.register(print, "last registered")
print("main done", flush=True)
""",
    "looks at itself": """
import os, sys, torch
print(__name__, __file__, __doc__, __spec__, __package__, __cached__, type(__loader__).__name__)
print(sys.argv, sys.path, sys.flags, sys.warnoptions, sys.executable)
print(sys.modules["__main__"].__dict__ is globals(), sys.excepthook is sys.__excepthook__)
print(dict(os.environ), os.getcwd())
print("sitecustomize" in sys.modules, [f for f in sys.meta_path if type(f).__name__ == "Standby"])
print(torch.__loader__.__dict__)
""",
    "looks at itself without torch": """
import os, sys
print(sys.argv, sys.path, [path for path in sys.path_importer_cache if path.endswith('shim')], sys.flags)
print(dict(os.environ))
print([name for name in sys.modules if "whygrad" in name and "runner" not in os.environ.get("WHYGRAD_LAUNCHER", "")])
""",
    "imports a neighbour": "import torch\nfrom neighbour import VALUE\nprint(VALUE)",
    "is imported nowhere": "import torch\nif __name__ == '__main__': print('main')",
    "warns": "import torch, warnings\nwarnings.warn('careful')\nwarnings.warn('again', stacklevel=1)",
    "pickles a class of its own": """
import pickle, torch
class Batch:
    def __init__(self, size): self.size = size
print(pickle.loads(pickle.dumps(Batch(3))).size, Batch.__module__)
""",
    "forks": """
import os, sys, torch
if os.fork() == 0:
    print("child", flush=True)
    sys.exit(7)
print("parent", os.waitstatus_to_exitcode(os.wait()[1]))
""",
    "forks before torch": """
import os
if os.fork() == 0:
    import torch
    print("child", flush=True)
    raise SystemExit(7)
print("parent", os.waitstatus_to_exitcode(os.wait()[1]))
""",
    "starts processes": """
import multiprocessing, os, torch
class Job:
    size = 3
def work(job):
    import torch
    return job.size, os.environ.get("PYTHONPATH"), [name for name in os.environ if "WHYGRAD_RUN" in name]
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(method, pool.map(work, [Job()]))
""",
    "starts another python": """
import subprocess, sys, torch
print(subprocess.run([sys.executable, "-c", "import os, sys, torch; print(sys.path, dict(os.environ))"],
                     capture_output=True, text=True).stdout)
""",
    "closes stdout": "import sys, torch\nprint('x', flush=True)\nsys.stdout.close()",
    "replaces stderr": "import io, sys, torch\nsys.stderr = io.StringIO()\nprint('lost', file=sys.stderr)\n1 / 0",
    "goes elsewhere": "import os, torch\nos.mkdir('there'); os.chdir('there'); print(os.getcwd())",
    "removes its folder": """
import os, shutil, torch
os.mkdir("there"); os.chdir("there"); os.rmdir("../there")
try:
    os.getcwd()
except FileNotFoundError:
    print("gone")
""",
    "shadows modules of ours": "import torch, rich, report\nprint(rich.NAME)",
    "looks for torch first": """
import importlib.util
print(importlib.util.find_spec("torch").name)
try:
    import torch.missing
except ImportError as error:
    print(error)
import torch
print(torch.__spec__.loader.__dict__)
""",
    "reads its input": "import sys, torch\nprint(sys.stdin.read().upper())",
}


def _without_addresses(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+", "0x", text)


def assert_faithful(plain: Ran, watched: Ran) -> None:
    assert plain.stdout == watched.stdout
    assert plain.status == watched.status
    shown, of_program = _without_addresses(watched.stderr), _without_addresses(plain.stderr)
    assert shown.startswith(of_program)
    said = shown.removeprefix(of_program)
    assert said == "" or said.startswith("whygrad: ")
    assert "internal error" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_script_runs_as_under_python(bench: Bench, name: str) -> None:
    bench.write(
        {
            "scripts/train.py": PROGRAMS[name],
            "scripts/neighbour.py": "VALUE = 7",
            "scripts/rich.py": "NAME = 'mine'",
            "scripts/report.py": "",
        }
    )
    words = ("scripts/train.py", "--lr", "0.1", "-q", "--json", "x", "--", "a b")

    plain = bench.plain(*words, stdin="text")
    for folder in bench.folder.glob("there"):
        folder.rmdir()
    watched = bench.watched(*words, stdin="text")

    assert_faithful(plain, watched)


COMMANDS = {
    "a module": ("-m", "train", "--lr", "0.1", "-q"),
    "a module of a package": ("-m", "package.train", "-x"),
    "a package": ("-m", "package", "-x"),
    "a module that raises": ("-m", "package.broken"),
    "a module that is interrupted": ("-m", "package.interrupted"),
    "code that is interrupted": ("-c", "import torch; raise KeyboardInterrupt"),
    "code that is interrupted otherwise": ("-c", "import torch\nclass Stop(KeyboardInterrupt): pass\nraise Stop"),
    "a folder that is interrupted": ("stopped",),
    "a module that is missing in its package": ("-m", "package.missing"),
    "a file called as a module": ("-m", "train.py"),
    "a module that does not compile": ("-m", "package.syntax"),
    "code": ("-c", "import sys, torch; print(sys.argv, sys.path, __name__, sorted(globals()))", "-q", "x"),
    "code that raises": ("-c", "import torch\n1 / 0"),
    "code that does not compile": ("-c", "1 +"),
    "code that exits": ("-c", "raise SystemExit(9)"),
    "a folder": ("package", "-x"),
    "a folder in other words": ("./package/", "-x"),
    "an archive": ("program.zip", "-x"),
    "a script in other words": ("./package/../train.py",),
    "a link to a script": ("link.py",),
    "byte code": ("compiled.pyc", "-x"),
}

SELF = "import sys, torch; print(__name__, __package__, __spec__ and __spec__.name, __file__, sys.argv, sys.path)\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_runs_as_under_python(bench: Bench, name: str) -> None:
    bench.write(
        {
            "train.py": SELF,
            "elsewhere/real.py": SELF,
            "package/__init__.py": "",
            "package/__main__.py": SELF,
            "package/train.py": SELF + "from . import neighbour; print(neighbour.__name__)",
            "package/neighbour.py": "",
            "package/broken.py": "import torch\ndef f():\n    raise ValueError(1)\nf()",
            "package/syntax.py": "1 +",
            "package/interrupted.py": "import torch; raise KeyboardInterrupt",
            "stopped/__main__.py": "import torch; raise KeyboardInterrupt",
            "compile.py": "import py_compile; py_compile.compile('train.py', 'compiled.pyc')",
        }
    )
    (bench.folder / "link.py").symlink_to("elsewhere/real.py")
    bench.plain("compile.py")
    with zipfile.ZipFile(bench.folder / "program.zip", "w") as archive:
        archive.writestr("__main__.py", SELF)

    assert_faithful(bench.plain(*COMMANDS[name]), bench.watched(*COMMANDS[name]))


FLAGS = {
    "optimized twice, unbuffered": ("-OOu",),
    "with warnings as errors": ("-W", "error", "-bb"),
    "with a development mode": ("-X", "dev"),
    "without the script's folder": ("-P",),
    "without site": ("-S",),
}


@pytest.mark.parametrize("name", FLAGS)
def test_the_interpreters_flags_are_kept(shim_bench: Bench, name: str) -> None:
    flags = FLAGS[name]
    shim_bench.env["PYTHONPATH"] += os.pathsep + _LIBRARIES  # for -S: where whygrad is
    shim_bench.write({"train.py": PROGRAMS["looks at itself"] + "print(sys._xoptions, __debug__)\nassert False"})

    assert_faithful(shim_bench.plain("train.py", flags=flags), shim_bench.watched("train.py", flags=flags))


@pytest.mark.parametrize("flags", [("-E",), ("-I",)])
def test_an_interpreter_that_ignores_the_environment_still_runs_the_program(
    shim_bench: Bench, flags: tuple[str, ...]
) -> None:
    shim_bench.write({"train.py": "import os, sys; print(sys.argv, sys.path, sys.flags, dict(os.environ))\n1 / 0"})

    watched = shim_bench.watched("train.py", flags=flags)

    assert_faithful(shim_bench.plain("train.py", flags=flags), watched)
    assert "whygrad: the program never imported torch" in watched.stderr


@pytest.mark.parametrize("pythonpath", [None, "", "one", "one::two"])
def test_the_search_path_is_given_back(
    shim_bench: Bench, pythonpath: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    del shim_bench.env["PYTHONPATH"]
    if pythonpath is not None:
        shim_bench.env["PYTHONPATH"] = pythonpath
    shim_bench.write({"train.py": PROGRAMS["looks at itself without torch"]})

    assert_faithful(shim_bench.plain("train.py"), shim_bench.watched("train.py"))


def test_another_sitecustomize_has_its_turn(shim_bench: Bench) -> None:
    library = Path(shim_bench.env["PYTHONPATH"])
    (library / "sitecustomize.py").write_text("import sys; RAN = (__name__, __file__, sys.path[0])")
    shim_bench.write({"train.py": "import sitecustomize; print(sitecustomize.RAN, sitecustomize.__spec__.origin)"})

    assert_faithful(shim_bench.plain("train.py"), shim_bench.watched("train.py"))


def test_another_sitecustomize_may_fail_or_import_torch(shim_bench: Bench) -> None:
    library = Path(shim_bench.env["PYTHONPATH"])
    (library / "sitecustomize.py").write_text("import torch\n1 / 0")
    shim_bench.write({"train.py": "print('done')"})

    plain = shim_bench.plain("train.py")
    watched = shim_bench.watched("train.py")

    assert "Error in sitecustomize" in plain.stderr
    # Once for `whygrad run` itself, once for the program.
    assert watched.stderr.startswith(2 * plain.stderr)
    assert shim_bench.log[-1] == "finish None"


def test_a_torch_that_cannot_be_imported_shows_its_own_traceback(bench: Bench) -> None:
    library = Path(bench.env["PYTHONPATH"])
    (library / "torch" / "__init__.py").write_text("def load():\n    raise OSError('no libtorch')\nload()")
    bench.write(
        {
            "train.py": """
try:
    import torch
except OSError as error:
    first = error
import torch
"""
        }
    )

    plain = bench.plain("train.py")
    watched = bench.watched("train.py")

    assert "no libtorch" in plain.stderr
    assert_faithful(plain, watched)


def test_a_real_interrupt_ends_the_program_as_under_python(bench: Bench) -> None:
    bench.write({"train.py": "import time, torch\nprint('ready', flush=True)\ntime.sleep(60)"})
    command = [sys.executable, "-m", "whygrad", "run", "train.py"]
    with subprocess.Popen(
        command,
        cwd=bench.folder,
        env=os.environ | bench.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)

    assert process.returncode == -signal.SIGINT
    assert re.search(r'train\.py", line \d, in <module>\n.*\n(    \^+\n)?KeyboardInterrupt\nwhygrad: ', stderr)
    assert "the program raised KeyboardInterrupt" in stderr
    assert bench.log[-1] == "finish KeyboardInterrupt()"
