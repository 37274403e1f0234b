"""`whygrad html`: writes one file and says where."""

from pathlib import Path

import pytest

from tests.runfile.samples import write_sample
from whygrad.cli import main


@pytest.fixture(autouse=True)
def a_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / ".whygrad" / "train-1"
    folder.mkdir(parents=True)
    write_sample(folder / "rank0.whygrad")
    return folder


def test_the_newest_run_becomes_a_page(capsys):
    assert main(["html"]) == 0

    said = capsys.readouterr()
    assert said.out == ""
    assert "wrote whygrad.html" in said.err
    assert Path("whygrad.html").read_text().startswith("<!doctype html>")


def test_a_page_may_go_to_another_file_or_to_stdout(capsys, a_run):
    assert main(["html", str(a_run), "-o", "page.html"]) == 0
    capsys.readouterr()
    assert main(["html", str(a_run), "-o", "-"]) == 0

    assert capsys.readouterr().out == Path("page.html").read_text()


def test_a_page_that_cannot_be_written_is_status_2(capsys):
    assert main(["html", "-o", "no/such/folder/page.html"]) == 2

    assert "cannot be written" in capsys.readouterr().err


def test_the_browser_is_opened_when_asked(monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)

    assert main(["html", "--open"]) == 0

    assert opened == [Path("whygrad.html").resolve().as_uri()]
