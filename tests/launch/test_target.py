from __future__ import annotations

from pathlib import Path

import pytest

from whygrad.errors import WhygradError
from whygrad.launch.target import Kind, Target, check


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("target", "command", "script", "stem"),
    [
        (Target(Kind.FILE, "src/train.py", ("-m",)), "src/train.py -m", "src/train.py", "train"),
        (Target(Kind.MODULE, "pkg.train", ("x",)), "-m pkg.train x", "-m pkg.train", "pkg.train"),
        (Target(Kind.CODE, "pass", ("x",)), "-c pass x", "-c", "command"),
        (Target(Kind.FILE, "my (new) script.py"), "my (new) script.py", "my (new) script.py", "my_new_script"),
        (Target(Kind.FILE, ".hidden/../-"), ".hidden/../-", ".hidden/../-", "program"),
    ],
)
def test_a_target_knows_its_command_and_its_names(target: Target, command: str, script: str, stem: str) -> None:
    assert command == " ".join(target.command)
    assert script == target.script
    assert stem == target.stem


def test_a_long_name_is_cut() -> None:
    assert 60 == len(Target(Kind.FILE, f"{'x' * 200}.py").stem)


def test_what_exists_passes(here: Path) -> None:
    (here / "train.py").write_text("this is no python")
    (here / "package").mkdir()
    (here / "package" / "__main__.py").touch()

    check(Target(Kind.FILE, "train.py"))
    check(Target(Kind.FILE, "package"))
    check(Target(Kind.FILE, "package/"))
    check(Target(Kind.MODULE, "train"))
    check(Target(Kind.MODULE, "package.missing"))  # python will say it
    check(Target(Kind.MODULE, "json.tool"))
    check(Target(Kind.CODE, "torchrun"))


def test_looking_for_a_module_does_not_run_it(here: Path) -> None:
    (here / "package").mkdir()
    (here / "package" / "__init__.py").write_text("raise SystemExit('ran')")

    check(Target(Kind.MODULE, "package.train"))


@pytest.mark.parametrize(
    ("kind", "name", "sentence"),
    [
        (Kind.FILE, "trian.py", "there is no file `trian.py`: did you mean `train.py`?"),
        (Kind.FILE, "sub/trian.py", "there is no file `sub/trian.py`"),
        (Kind.FILE, "other", "there is no file `other`"),
        (Kind.FILE, "-", "there is no file `-`"),
        (Kind.FILE, "", "`.` is a folder without a __main__.py: name the script in it"),
        (Kind.FILE, "folder", "`folder` is a folder without a __main__.py: name the script in it"),
        (Kind.FILE, "train.py/x", "`train.py/x` cannot be read"),
        (Kind.FILE, "nul\0.py", "cannot be read"),
        (Kind.MODULE, "trian", "there is no module `trian` in the working directory or among the installed packages"),
        (Kind.MODULE, "", "there is no module ``"),
        (Kind.MODULE, ".train", "there is no module `.train`"),
        (Kind.MODULE, "torch.distributed.run", "`torch.distributed.run` trains in processes of its own"),
        (Kind.FILE, "torchrun", "torchrun [options] --no-python python -m whygrad run train.py"),
        (Kind.FILE, "/usr/bin/accelerate", "`/usr/bin/accelerate` trains in processes of its own"),
    ],
)
def test_what_cannot_be_run_is_one_sentence(here: Path, kind: Kind, name: str, sentence: str) -> None:
    (here / "train.py").touch()
    (here / "folder").mkdir()

    with pytest.raises(WhygradError) as raised:
        check(Target(kind, name))

    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.skipif("os.getuid() == 0", reason="root may read everything")
def test_a_file_that_must_not_be_read_is_one_sentence(here: Path) -> None:
    (here / "train.py").touch(mode=0)

    with pytest.raises(WhygradError, match=r"`train.py` cannot be read: .*Permission denied"):
        check(Target(Kind.FILE, "train.py"))
