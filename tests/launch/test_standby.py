from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec

import pytest

from whygrad.launch.standby import Standby, uncaught_error


class Finder:
    def __init__(self, loader: object) -> None:
        self.loader = loader

    def find_spec(self, name, *_):
        return ModuleSpec(name, self.loader)


@pytest.fixture
def standby(monkeypatch: pytest.MonkeyPatch) -> Standby:
    standby = Standby("/nowhere", "{}")
    monkeypatch.setattr(sys, "meta_path", [standby, *sys.meta_path])
    return standby


def test_other_modules_are_none_of_its_business(standby: Standby) -> None:
    assert standby.find_spec("json") is None
    assert standby.find_spec("torch.nn") is None


def test_a_mere_folder_called_torch_is_passed_on(standby: Standby, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [standby, Finder(None)])

    spec = standby.find_spec("torch")

    assert spec is not None
    assert spec.loader is None


def test_without_torch_there_is_nothing_to_find(standby: Standby, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [standby])

    assert standby.find_spec("torch") is None


def test_looking_for_torch_leaves_no_trace_on_what_is_loaded_already(standby: Standby) -> None:
    spec = standby.find_spec("torch")

    assert spec is not None
    assert spec.origin == importlib.util.find_spec("torch").origin
    assert "exec_module" in vars(spec.loader)  # it will call back
    assert "exec_module" not in vars(type(spec.loader))


def test_a_forked_process_is_not_watched(standby: Standby, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: -1)

    spec = standby.find_spec("torch")

    assert spec is not None
    assert "exec_module" not in vars(spec.loader)


def test_an_error_that_ended_nothing_is_not_taken_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        int("")
    except ValueError as error:
        caught = error
    monkeypatch.setattr(sys, "last_value", caught, raising=False)
    monkeypatch.setattr(sys, "last_traceback", caught.__traceback__, raising=False)
    assert uncaught_error() is None

    monkeypatch.setattr(sys, "last_traceback", None, raising=False)  # a script that does not compile has none
    assert caught is uncaught_error()
