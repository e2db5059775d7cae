"""Element rows into a table: those of a micro-batch come to the driver as Arrow, and are one version there.

    lake/readings/…                                    the table (see `delta` and `parquet`)
    lake/readings/_quarantine/5c1f9a-000000012.jsonl   refused rows

Refused rows are set aside first, under names that a micro-batch which runs again replaces; then the table is
changed, once.

Cost: a micro-batch is in the memory of the driver, in the JVM and in Python, and no larger than
``spark.driver.maxResultSize``; the source limits it. Executors need not see the folder of the table. What the
table makes of it is computed by one process.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from anabranch.connectors.files.local_path import local_path
from anabranch.connectors.folder.file_places import FilePlaces
from anabranch.connectors.folder.sink import QUARANTINE
from anabranch.connectors.tables.current import Current
from anabranch.connectors.tables.history import History
from anabranch.connectors.tables.micro_batch import MicroBatch, payload_of
from anabranch.connectors.tables.table_error import TableError, not_ours
from anabranch.connectors.tables.views import Elements, View, plain_columns
from anabranch.engines.spark.hidden_rows import whole
from anabranch.engines.spark.one_row import SCD, SEVERAL, check_one_row, is_scd
from anabranch.engines.spark.query.begun_with import begun_with, check_begun_with
from anabranch.engines.spark.query.begun_with import table_sink as sink_settings
from anabranch.engines.spark.query.check import went_back
from anabranch.engines.spark.query.checkpoint import begun, known_query, query_id
from anabranch.engines.spark.query.failure import errors_to_driver
from anabranch.engines.spark.query.provenance import check_rows_apart, numbered_by
from anabranch.engines.spark.query.seal import seal
from anabranch.engines.spark.query.start import check_elements, check_streaming, check_trigger, started
from anabranch.engines.spark.transport.frontier_rows import with_least
from anabranch.engines.whole_file import whole_file
from anabranch.extras import check_installed
from anabranch.model.span import span
from anabranch.model.time import BEGINNING
from anabranch.rows.element_columns import REFUSED
from anabranch.rows.layout import names_of
from anabranch.rows.text import text_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

KINDS, FORMATS = ("elements", "current", "history"), ("delta", "parquet")
_MARK = "anabranch-table"
_KEPT = {"delta": timedelta(days=7), "parquet": timedelta(hours=1)}


def write_table(
    rows: "DataFrame",
    path: str | Path,
    *,
    kind: str,
    checkpoint: str | Path,
    format: str = "delta",  # noqa: A002
    key: str | Iterable[str] = (),
    open_only: bool = False,
    final: bool = False,
    quarantine: str | Path | None = None,
    available_now: bool = False,
    trigger: str | None = None,
    name: str | None = None,
    compact_every: int | None = 100,
    keep: str | timedelta | None = None,
) -> "StreamingQuery":
    """Start a query that keeps a table at what `merge` gives, each micro-batch as one version, once.

    ``kind`` says what a row is: an element as it came (``elements``), an event of the relation with
    ``valid_from`` and ``valid_to`` (``history``; of changes, a slowly changing dimension of type 2), or the
    latest event of each ``key`` with ``valid_from`` (``current``). For current values, ``open_only`` leaves
    out events that have an end (rows of a table that were deleted), and ``final`` says that no event is ever
    taken back (as under FinalOnly), so that nothing is kept to fall back to. A history of changes has one row
    without ``valid_to`` for each key that is there.

    ``format`` is ``delta``, or ``parquet``: plain files, of which ``latest`` inside the folder has those of
    the newest version.

    ``checkpoint`` is the folder from which the query goes on after a restart. Refused rows go to
    ``quarantine`` as JSON lines (default: ``_quarantine`` inside the folder). ``available_now``: stop when
    all that is there has been read; else go on, with a micro-batch every ``trigger`` ('10 seconds') or as
    soon as the last is done.

    Every ``compact_every`` micro-batches (None: never) small files are put together, and those removed that
    the table has not referred to for ``keep`` (default: 7 days, of Parquet an hour): so long may a reader
    take.
    """
    check_trigger(available_now=available_now, trigger=trigger)
    kept = kept_for(format, keep, compact_every)
    shape = TableShape(kind, format, names_of(key) or (), open_only=open_only, final=final)
    shape.check()
    place, base = local_path(path), local_path(checkpoint)
    aside = local_path(quarantine) if quarantine is not None else place / QUARANTINE
    check_elements(rows, TableError)
    if kind == "history":
        check_one_row(rows.schema["kind"].metadata.get(SEVERAL))
    columns = element_columns(rows.schema)
    shape.view(columns)
    check_streaming(rows)
    check_rows_apart(rows, place, base)
    begins = begun_with(rows, shape.settings())
    check_begun_with(base, begins)
    check_table(place, base, shape, columns)
    target = shape.target(place, query_id(base), columns, base / _MARK, compact_every, kept)
    target.prepare()
    written = TableWriter(target, columns, aside, checkpoint=base, numbered=numbered_by(rows))
    writer = whole(rows).writeStream.foreachBatch(written)

    def first() -> None:
        written, last = target.written(), begun(base)
        if written > last:
            raise went_back(base, last, f"the table {place} has micro-batch {written}")

    return started(
        writer,
        base,
        available_now=available_now,
        trigger=trigger,
        name=name,
        settings=begins,
        first=first,
    )


def kept_for(form: str, keep: str | timedelta | None, compact_every: int | None) -> timedelta:
    """How long files stay that a table no longer refers to; raises where its upkeep makes no sense."""
    if compact_every is not None and compact_every < 1:
        raise ValueError(f"compact_every is 1 or more, or None, not {compact_every}")
    if form not in FORMATS:
        raise ValueError(f"a format of tables is one of {', '.join(FORMATS)}, {form!r} is none")
    kept = _KEPT[form] if keep is None else span(keep, "keep")
    if not isinstance(kept, timedelta) or kept < timedelta(0):
        raise ValueError(f"keep is a length of time such as '7 days', not {keep!r}")
    return kept


class Target(Protocol):
    """A table that a query keeps, in some format."""

    query: str

    def check(self) -> None:
        """Raise where the table is not the one that this query keeps, or cannot be made here."""

    def prepare(self) -> None:
        """Make the table if it is not there, and check that it is the one that this query keeps."""

    def written(self) -> int:
        """The last micro-batch that changed the table; -1 for none."""

    def write(self, batch: int, rows: MicroBatch) -> None:
        """Let a micro-batch change the table, unless it has."""

    def tend(self, batch: int) -> None:
        """See to the upkeep of the table, where it is time for it."""


@dataclass(frozen=True, slots=True)
class TableShape:
    """What a table is, by the words that people have for it."""

    kind: str
    format: str
    key: tuple[str, ...] = ()
    open_only: bool = False
    final: bool = False

    def check(self) -> None:
        """Raise where its words do not go together, whatever its columns are."""
        given = {"key": self.key, "open_only": self.open_only, "final": self.final}
        odd = [name for name, value in given.items() if value]
        if self.kind in KINDS and self.kind != "current" and odd:
            error = ValueError(
                f"key, open_only and final are of tables of kind 'current', this one is {self.kind!r}, with "
                f"{' and '.join(odd)}"
            )
            error.add_note(f'Leave {" and ".join(odd)} out, or write kind = "current".')
            raise error
        if self.kind == "current" and not self.key:
            error = ValueError("a table of current values has a key, and none is given")
            error.add_note('Name the columns that tell its rows apart: key = "sensor".')
            raise error

    def settings(self) -> dict[str, str]:
        """What a checkpoint fixes of it."""
        return sink_settings(self.kind, self.format, self.key, open_only=self.open_only, final=self.final)

    def view(self, columns: pa.Schema) -> View:
        """The kind of table, for element rows of these columns."""
        return view_of(self.kind, columns, self.key, open_only=self.open_only, final=self.final)

    def target(self, place: Path, query: str, columns: pa.Schema, *rest: Any) -> Target:
        """The table of a query."""
        settings = json.dumps({"key": self.key, "open_only": self.open_only, "final": self.final})
        return _target(self.format)(place, query, self.view(columns), settings, *rest)


def check_table(place: Path, checkpoint: Path, shape: TableShape, columns: pa.Schema) -> None:
    """Raise where a table cannot be kept in a place from this checkpoint on; nothing is made."""
    mark = checkpoint / _MARK
    if begun(checkpoint) >= 0 and not mark.exists():
        raise not_ours(
            f"the checkpoint {checkpoint} is of a query that has written to something else than a table"
        )
    shape.target(place, known_query(checkpoint) or "", columns, mark).check()


def _target(form: str) -> Callable[..., Target]:
    if form == "parquet":
        from anabranch.connectors.tables.parquet import ParquetTarget

        return ParquetTarget
    check_package()
    from anabranch.connectors.tables.delta import DeltaTarget

    return DeltaTarget


def view_of(kind: str, columns: pa.Schema, key: tuple[str, ...], *, open_only: bool, final: bool) -> View:
    """The kind of table that people name, for element rows of these columns."""
    TableShape(kind, "delta", key, open_only=open_only, final=final).check()
    match kind:
        case "elements":
            return Elements(columns)
        case "history":
            return History(payload_of(columns), columns.field("start").type)
        case "current":
            return Current(payload_of(columns), columns.field("start").type, key, open_only, final)
    error = ValueError(f"a kind of table is one of {', '.join(KINDS)}, {kind!r} is none")
    if is_scd(kind):
        error.add_note(SCD)
    raise error


@dataclass
class TableWriter:
    """What Spark calls with each micro-batch, and again with the last one after a crash."""

    target: Target
    columns: pa.Schema
    """Those of element rows, as the table holds them."""
    quarantine: Path
    frontier: int = BEGINNING
    checkpoint: Path | None = None
    numbered: Mapping[str, str] = field(default_factory=dict)
    """The folders whose files and lines number rows, by the names of their sources."""

    def __call__(self, frame: "DataFrame", batch: int) -> None:
        """Write a micro-batch; its rows are computed in any case, for Spark writes its state with them."""
        rows = frame.toArrow()
        with errors_to_driver():
            self.write(rows, batch)
            if self.checkpoint is not None:
                seal(self.checkpoint, batch)

    def write(self, rows: pa.Table, batch: int) -> None:
        """Set refused rows aside, let the others change the table, and see to its upkeep."""
        if REFUSED in rows.schema.names:
            self._set_aside(rows.column(REFUSED).drop_null(), batch)
            rows = rows.filter(rows.column(REFUSED).is_null()).drop_columns([REFUSED])
        rows = with_least(rows)
        if rows.num_rows:
            told = MicroBatch(rows.cast(self.columns), self.frontier)
            self.target.write(batch, told)
            self.frontier = told.frontier
        self.target.tend(batch)

    def _set_aside(self, refused: Any, batch: int) -> None:
        file = self.quarantine / f"{self.target.query}-{batch:09}.jsonl"
        if not len(refused):
            file.unlink(missing_ok=True)
            return
        rows = refused.to_pylist()
        if self.numbered and self.checkpoint is not None:
            rows = map(FilePlaces(self.numbered, self.checkpoint, batch).placed, rows)
        self.quarantine.mkdir(parents=True, exist_ok=True)
        with whole_file(str(file)) as out:
            out.writelines(f"{text_of(row)}\n".encode() for row in rows)


def element_columns(schema: "StructType") -> pa.Schema:
    """The columns of element rows, as a table holds them."""
    return plain_columns(_arrow_columns(schema))


def _arrow_columns(schema: "StructType") -> pa.Schema:
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_type

    fields = []
    for one in schema:
        try:
            fields.append(pa.field(one.name, to_arrow_type(one.dataType, timezone="UTC")))
        except PySparkException as reason:
            kind = one.dataType.simpleString()
            raise TableError(f"column {one.name!r} is {kind}, which Arrow does not know: {reason}") from None
    return pa.schema(fields)


def check_package() -> None:
    """Raise where what Delta tables are written through is not installed."""
    check_installed(
        "deltalake", "deltalake", "delta", "Delta tables are written through", ", or write format='parquet'"
    )
