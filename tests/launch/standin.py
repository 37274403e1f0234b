"""A tiny `torch`, and a tiny session: what is tested here is the launcher, and torch takes two seconds to import.

The stand-in torch puts the stand-in session in the place of the real one. That session writes a run file through the
real writer, and reports what is done to it to the file named by SESSION_LOG.
"""

from __future__ import annotations

from pathlib import Path

TORCH = """
import os, sys, types

def log(*words):
    if "SESSION_LOG" in os.environ:
        with open(os.environ["SESSION_LOG"], "a") as file:
            print(*words, file=file)

class SessionOptions:
    def __init__(self, **values):
        vars(self).update(values)

class Session:
    def __init__(self, options):
        self.options = options
        self.path = options.folder / f"rank{options.rank}.whygrad"
        self.notes = []

    def count_start(self, began):
        pass

    def start(self):
        from whygrad.model import RunInfo
        from whygrad.runfile.writer import RunWriter

        if "SESSION_FAILS" in os.environ:
            raise KeyError("broken")
        o = self.options
        info = RunInfo(script=o.script, argv=o.argv, rank=o.rank, world_size=o.world_size)
        self.writer = RunWriter(self.path, info)
        os.register_at_fork(after_in_child=self.abandon)
        log("start", o.script, list(o.argv), o.every, o.overhead)

    def note(self, text):
        self.notes.append(text)

    def undo_later(self, undo):
        pass

    def abandon(self):
        log("abandon")

    def finish(self, error=None):
        from whygrad.model import Raised, RunInfo

        log("finish", repr(error))
        o = self.options
        self.writer.update_info(RunInfo(
            script=o.script, argv=o.argv, rank=o.rank, world_size=o.world_size, ended=True, notes=tuple(self.notes),
            raised=None if error is None else Raised(type(error).__name__, str(error))))
        self.writer.close()

session = types.ModuleType("whygrad.probe.session")
session.Session, session.SessionOptions = Session, SessionOptions
sys.modules["whygrad.probe.session"] = session

if "FINDING" in os.environ:
    import whygrad.run
    from whygrad.model import Finding, Severity

    finding = Finding("no-step", Severity(os.environ["FINDING"]), ("w",), "`w` stays", "step", evidence={"steps": 0})
    whygrad.run.Run.findings = property(lambda self: (finding,))
"""


def write_torch(folder: Path) -> Path:
    """Write the stand-in torch as a package below `folder`, and return what to put on PYTHONPATH."""
    package = folder / "libraries" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(TORCH, encoding="utf-8")
    return package.parent
