"""Pathway as a stream: a Python connector whose rows replace those of the same key.

To forget old keys (`Table.forget` before a `groupby`) halves the rate again, and takes more memory, not less.
"""

from collections.abc import Iterable
from pathlib import Path

import pathway as pw
from pathway.internals.parse_graph import G

from peers.arrivals import Job, Ready, Row, rows, tuples

BACKLOG = 65_536


class Event(pw.Schema):
    """What is revised is the end."""

    start: int = pw.column_definition(primary_key=True)
    end: int
    number: int = pw.column_definition(primary_key=True)
    text: str = pw.column_definition(primary_key=True)


class Arrivals(pw.io.python.ConnectorSubject):
    """All copies in arrival order."""

    def __init__(self, batches: Iterable[list[Row]]) -> None:
        super().__init__(session_type="upsert")
        self.batches = batches

    def run(self) -> None:
        """Say the rows."""
        for batch in self.batches:
            for start, end, number, text in batch:
                self.next(start=start, end=end, number=number, text=text)


def total(found: pw.Table) -> tuple[int, int]:
    """Run what leads to these rows, hand them on to nobody, and count them."""
    counted: dict[str, int] = {}
    pw.io.null.write(found)
    pw.io.subscribe(
        found.reduce(rows=pw.reducers.count(), ends=pw.reducers.sum(pw.this.end)),
        on_change=lambda key, row, time, is_addition: counted.update(row) if is_addition else None,
    )
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return counted["rows"], counted["ends"]


def prepare(folder: Path, revised: bool, ready: Ready) -> Job:
    """Rows are tuples; where none is revised, what replaces a row is the same row."""
    batches = ready(map(tuples, rows(folder)))

    def job() -> tuple[int, int]:
        G.clear()
        return total(pw.io.python.read(Arrivals(batches), schema=Event, max_backlog_size=BACKLOG))

    return job
