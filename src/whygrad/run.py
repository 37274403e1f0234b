"""A recorded run, read from its file: `load` and `Run`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path

from whygrad.errors import RunFileError
from whygrad.evidence import Evidence
from whygrad.model import Finding
from whygrad.report import table, terminal
from whygrad.report.opening import open_run
from whygrad.report.verdict import Judgement, judge, verdict_line
from whygrad.rules import all_rules


def load(path: str | PathLike[str] | None = None) -> Run:
    """Read a run.

    Args:
        path: A run folder (`.whygrad/train-...`), one rank's file, or None: the newest run under `.whygrad` in
            the working directory.

    Raises:
        RunFileError: There is no such run, or no file of it can be read.
    """
    opened = open_run(path)
    return Run(opened.path, opened.ranks, opened.unread)


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """One execution of a program under whygrad, and what the rules say about it.

    The rules run once, when the findings are first asked for.
    """

    path: Path | None  # the folder or file it was read from; None: it was never written
    ranks: tuple[Evidence, ...]  # of every rank that left a file, by rank; at least one
    unread: tuple[str, ...] = ()  # why files of further ranks could not be read, a sentence each

    @property
    def evidence(self) -> Evidence:
        """Return the evidence of rank 0, or of the lowest rank that left a file."""
        return self.ranks[0]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the findings, the one to act on first; consequences folded in, silenced ones dropped."""
        return self._judgement.findings

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what was not observed, a sentence each."""
        return (*self._judgement.notes, *self.unread)

    @cached_property
    def _judgement(self) -> Judgement:
        return judge(self.ranks, all_rules())

    def report(self, color: bool = False, width: int = 80) -> str:
        """Return the verdict as text, as `whygrad report` prints it."""
        return terminal.render(self, color=color, width=width)

    def table(self) -> dict[str, list[str] | list[int] | list[float]]:
        """Return the statistics of every parameter's and module output's gradient, one list per column.

        Columns: name, kind ("parameter" or "output"), steps, mean, std, mean_abs, l2, max_abs, zero_share, nans, infs.
        `pandas.DataFrame(run.table())` takes it as it is.
        """
        return table.columns(self.evidence)

    def save(self, path: str | PathLike[str]) -> Path:
        """Copy the run's folder or file to `path`, which must not exist yet, and return it.

        Raises:
            RunFileError: The run has no file, `path` exists, or it cannot be written.
        """
        import shutil  # slow to import, and seldom needed

        target = Path(path)
        if self.path is None:
            msg = "this run was never written to a file, there is nothing to copy"
            raise RunFileError(msg)
        if target.exists():
            msg = f"`{target}` exists already: give a path that does not"
            raise RunFileError(msg)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if self.path.is_dir() else shutil.copy2)(self.path, target)
        except (OSError, shutil.Error) as error:
            msg = f"cannot copy `{self.path}` to `{target}`: {error}"
            raise RunFileError(msg) from error
        return target

    def __repr__(self) -> str:
        return f"<Run {self.evidence.info.script}: {verdict_line(self)}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002 - IPython's signature
        return {"text/plain": self.report(), "text/html": self._html()}

    def _html(self) -> str:
        from html import escape

        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        cards = "".join(finding._repr_html_() for finding in self.findings)
        listed = f"<details><summary>not observed</summary><ul>{notes}</ul></details>" if notes else ""
        return f"<div><p><b>whygrad: {escape(verdict_line(self))}</b></p>{cards}{listed}</div>"
