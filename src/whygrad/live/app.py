"""The live view: verdict so far, every parameter with its gradient over the steps, loss; sort, filter, open one.

It works in 80 x 24 and over ssh. The run's file is read in a thread, so that keys answer at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Input, Static

from whygrad.errors import WhygradError
from whygrad.live.rows import SPARK_STEPS, Order, Row, arranged, loss_line, of, rows
from whygrad.model import Severity
from whygrad.report.verdict import verdict_line
from whygrad.report.writing import printable, scientific
from whygrad.run import Run

REFRESH_S = 1.0
_READING_SHARE = 0.2  # of the time that may be spent on reading a large run's file
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold cyan"}
_FINDINGS = 4
_COLUMNS = (("state", 12), ("|g|", 5), ("update/w", 8), ("gradient over steps", SPARK_STEPS), ("parameter", None))


class Detail(ModalScreen[None]):
    """One parameter: facts, findings, places."""

    CSS = "Detail { align: center middle; } #detail { width: 90%; height: 80%; border: round $primary; padding: 0 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q", "close", "close")]

    def __init__(self, run: Run, row: Row) -> None:
        super().__init__()
        self._run = run
        self._row = row

    def compose(self) -> ComposeResult:
        """Show the facts as text."""
        with VerticalScroll(id="detail"):
            yield Static(_described(self._run, self._row))

    def action_close(self) -> None:
        """Go back to the table."""
        self.dismiss()


def _described(run: Run, row: Row) -> Text:
    text = Text(printable(row.name) + "\n", style="bold")
    parameter = of(run.evidence, row.name)
    if parameter is not None:
        shape = ", ".join(map(str, parameter.shape))
        text.append(f"[{shape}] {parameter.dtype}, {row.state}\n", style="none")
        text.append(f"gradient in {parameter.gradient_steps} of {parameter.steps} steps\n")
        if parameter.made_at is not None:
            text.append(f"made at {printable(parameter.made_at.file)}:{parameter.made_at.line}\n")
    text.append(f"{row.spark}  |g| {scientific(row.size, 0)}, update/weight {scientific(row.ratio, 0)}\n")
    for finding in run.findings:
        if row.name in finding.tensors:
            text.append(f"\n{finding.severity} {finding.rule}", style=_STYLES[finding.severity])
            text.append(f": {printable(finding.message)}\n")
            if finding.place is not None:
                text.append(f"  {printable(finding.place.file)}:{finding.place.line}\n    {finding.place.code}\n")
            text.append(f"  fix: {printable(finding.fix)}\n")
    return text


class LiveApp(App[None]):
    """Follows one run.

    Args:
        read: Reads the run as it is now.
        source: What to call it.
    """

    TITLE = "whygrad live"
    CSS = """
    #verdict { height: auto; max-height: 3; } #loss { height: 1; color: $text-muted; }
    #findings { height: auto; max-height: 5; } DataTable { height: 1fr; } #filter { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort", "sort"),
        Binding("slash", "filter", "filter", key_display="/"),
        Binding("enter", "open", "open", show=True),
        Binding("escape", "clear", "all", show=False),
        Binding("q", "quit", "quit"),
    ]

    def __init__(self, read: Callable[[], Run], source: str) -> None:
        super().__init__()
        self._read = read
        self._source = source
        self._run: Run | None = None
        self._rows: tuple[Row, ...] = ()
        self._order = Order.WORST
        self._wanted = ""

    @property
    def is_waiting(self) -> bool:
        """Return whether nothing of the run has been read yet."""
        return self._run is None

    def compose(self) -> ComposeResult:
        """Lay the parts out from top to bottom."""
        yield Static(f"waiting for {self._source}", id="verdict", markup=False)
        yield Static("", id="loss", markup=False)
        yield DataTable(id="table", cursor_type="row", zebra_stripes=True)
        yield Input(placeholder="part of a name", id="filter")
        yield Static("", id="findings", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Begin to read."""
        table: DataTable[Text] = self.query_one("#table", DataTable)
        for label, width in _COLUMNS:
            table.add_column(label, width=width)
        table.focus()
        self.refresh_run()

    @work(thread=True, exclusive=True)
    def refresh_run(self) -> None:
        """Read the run in a thread, show it, and come back when it may have changed."""
        began = time.perf_counter()
        try:
            run = self._read()
            found = (run, rows(run.evidence), run.findings)
        except WhygradError as error:
            self.call_from_thread(self._wait, str(error))
        else:
            self.call_from_thread(self._show, found[0], found[1])
        spent = time.perf_counter() - began
        self.call_from_thread(self.set_timer, max(REFRESH_S, spent / _READING_SHARE), self.refresh_run)

    def _wait(self, why: str) -> None:
        if self._run is None:
            self.query_one("#verdict", Static).update(f"waiting: {why}")

    def _show(self, run: Run, found: tuple[Row, ...]) -> None:
        self._run, self._rows = run, found
        info = run.evidence.info
        state = "ended" if info.ended else "running"
        self.query_one("#verdict", Static).update(Text(f"{state}, {info.steps} steps: {verdict_line(run)}", "bold"))
        self.query_one("#loss", Static).update(loss_line(run.evidence, self.size.width - 20))
        self.query_one("#findings", Static).update(_findings(run))
        self._fill()

    def _fill(self) -> None:
        table: DataTable[Text] = self.query_one("#table", DataTable)
        at = table.cursor_row
        table.clear()
        for row in arranged(self._rows, self._order, self._wanted):
            style = "" if row.state == "learns" else "dim" if row.state in ("frozen", "unused") else "red"
            cells = (row.state, scientific(row.size, 0), scientific(row.ratio, 0), row.spark, printable(row.name))
            table.add_row(*(Text(cell, style) for cell in cells), key=row.name)
        if table.row_count:
            table.move_cursor(row=min(at, table.row_count - 1))

    # -- keys -------------------------------------------------------------------------------------------------------

    def action_sort(self) -> None:
        """Take the next order."""
        orders = list(Order)
        self._order = orders[(orders.index(self._order) + 1) % len(orders)]
        self.notify(self._order.value, timeout=1)
        self._fill()

    def action_filter(self) -> None:
        """Ask for a part of the names to show."""
        box = self.query_one("#filter", Input)
        box.display = True
        box.focus()

    def action_clear(self) -> None:
        """Show all rows again."""
        self._wanted = ""
        box = self.query_one("#filter", Input)
        box.value = ""
        box.display = False
        self.query_one("#table", DataTable).focus()
        self._fill()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the name is being typed."""
        self._wanted = event.value
        self._fill()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        """Go back to the table."""
        self.query_one("#table", DataTable).focus()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the parameter that was chosen."""
        row = next((row for row in self._rows if row.name == event.row_key.value), None)
        if row is not None and self._run is not None:
            self.push_screen(Detail(self._run, row))


def _findings(run: Run) -> Text:
    text = Text()
    for finding in run.findings[:_FINDINGS]:
        text.append(f"{finding.severity} {finding.rule}", style=_STYLES[finding.severity])
        where = f" {Path(finding.place.file).name}:{finding.place.line}" if finding.place is not None else ""
        text.append(f"{printable(where)} {printable(finding.message)}\n")
    return text
