"""What one version of a Delta table changed, as rows: what happened to each, when, and in which version.

Within a version rows that go come first, then those that come: an update is both, at one time, so a row whose
key is changed goes and comes under another. A version gives its rows in the same order whenever it is read.
Nothing is held in memory but a batch of rows.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any

import msgspec
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from anabranch.connectors.delta.commits import FEED, Commit, batches, is_logged
from anabranch.connectors.files.local_path import path_meant
from anabranch.connectors.tables.table_error import TableError
from anabranch.model.schema import SchemaError
from anabranch.model.zones import cast
from anabranch.rows.layout import Layout
from anabranch.rows.reading import Place, Read, read_rows

VERSION_ROWS = 1 << 40
"""More rows than a version changes: the sequence of a row is its version and its own number."""
_TIME = "_commit_timestamp"
_MAPPING = "delta.columnMapping.mode"


@dataclass(frozen=True, slots=True)
class VersionRange:
    """What a version changed, or, of a snapshot, the rows that are there at it."""

    replica: str
    path: str
    table: str
    """The identity of the table."""
    version: int
    whole: bool = False


@dataclass(frozen=True)
class Opened:
    """A table whose changes are fed."""

    path: str
    table: DeltaTable

    @cached_property
    def columns(self) -> pa.Schema:
        """The columns of its rows."""
        return pa.schema(self.table.schema().to_arrow()).remove_metadata()

    @property
    def identity(self) -> str:
        """What tells it from a table that is made in its place."""
        return str(self.table.metadata().id)

    @property
    def version(self) -> int:
        """The last version."""
        return int(self.table.version())

    def changes(self, part: VersionRange) -> Iterator[tuple[str, pa.RecordBatch]]:
        """What happened, and to which rows, in the order in which it counts.

        Rows of the first version may have been elsewhere before there was this table: they are a snapshot.
        """
        with _named(self.path, part.version):
            commit = Commit(self.path, part.version)
            time = pa.scalar(commit.time, pa.timestamp("ms"))
            partitions = self.table.metadata().partition_columns
            changes = commit.changes(self.columns, partitions)
            for op, rows in self._rows_at(part.version) if part.whole else changes:
                yield (
                    "snapshot" if part.version == 0 else op,
                    rows.append_column(_TIME, pa.repeat(time, rows.num_rows)),
                )

    def _rows_at(self, version: int) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows that are there at a version."""
        then = DeltaTable(self.path, version=version).to_pyarrow_dataset()
        for file in sorted(then.get_fragments(), key=lambda one: one.path):
            yield from (("snapshot", rows) for rows in batches(file, then.schema))

    def check_goes_on(self, table: str, version: int) -> None:
        """Raise where it is not the table that was read, or has less than was read before a version."""
        if self.identity != table:
            raise made_anew(self.path)
        if version > self.version + 1:
            raise put_back(
                f"the table {self.path} was read up to version {version - 1}, and its last is {self.version}"
            )


def opened(path: str) -> Opened:
    """A table, if it is there and its changes are fed."""
    try:
        table = DeltaTable(path)
    except TableNotFoundError:
        gone = TableError(f"{path} is no Delta table that is there{path_meant(path)}")
        gone.add_note("Give the folder of a table, the one that has _delta_log in it.")
        raise gone from None
    except DeltaError as reason:
        raise TableError(f"the table {path} cannot be read: {_first_line(reason)}") from None
    if table.metadata().configuration.get(FEED, "").lower() != "true":
        off = TableError(f"the change data feed of {path} is off")
        off.add_note(
            f"Turn it on: DeltaTable(path).alter.set_table_properties({{'{FEED}': 'true'}}), and begin with "
            "start='snapshot'."
        )
        raise off
    if table.metadata().configuration.get(_MAPPING, "none") != "none":
        mapped = TableError(f"the columns of {path} have other names in its files ({_MAPPING})")
        mapped.add_note("Changes of such tables cannot be read; write them to a table without it.")
        raise mapped
    return Opened(path, table)


def reads(
    group: list[VersionRange], columns: pa.Schema, names: Mapping[str, str], layout: Layout
) -> Iterator[list[Read]]:
    """What several versions say, a batch of each in turn, so that copies of an event are together."""
    for turn in zip_longest(*(_reads(part, columns, names, layout) for part in group)):
        yield [read for read in turn if read is not None]


def _reads(
    part: VersionRange, columns: pa.Schema, names: Mapping[str, str], layout: Layout
) -> Iterator[Read]:
    table = opened(part.path)
    if table.identity != part.table:
        raise made_anew(part.path)
    source, row = f"{part.path}@{part.version}", 0
    knows_since_when = layout.start != names.get("time")
    for op, rows in table.changes(part):
        place = Place(source, row, part.version * VERSION_ROWS + row)
        what = "insert" if op == "snapshot" and knows_since_when else op
        yield read_rows(layout, _as_told(rows, what, part, columns, names), place)
        row += rows.num_rows


def _as_told(
    rows: pa.RecordBatch, op: str, part: VersionRange, columns: pa.Schema, names: Mapping[str, str]
) -> pa.RecordBatch:
    """Rows in the columns and types of the source, those that it adds among them."""
    count = rows.num_rows
    added: dict[str, Any] = {
        "op": lambda: _repeated(op, count),
        "time": lambda: rows.column(_TIME).cast(pa.timestamp("us", "UTC")),
        "version": lambda: pa.repeat(pa.scalar(part.version, pa.int64()), count),
        "replica": lambda: _repeated(part.replica, count),
    }
    own = {name: added[what]() for what, name in names.items()}
    found = []
    for field in columns:
        if field.name not in own and field.name not in rows.schema.names:
            error = SchemaError(f"version {part.version} of {part.path} has no column {field.name!r}")
            error.add_note("The columns are those that the table had when the query started; start it again.")
            raise error
        column = own[field.name] if field.name in own else rows.column(field.name)
        found.append(column if pa.types.is_dictionary(column.type) else _cast(column, field, part))
    return pa.RecordBatch.from_arrays(found, names=columns.names)


def _repeated(word: str, count: int) -> Any:
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), count), [word])


def _cast(column: Any, field: pa.Field, part: VersionRange) -> Any:
    try:
        return cast(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as reason:
        error = SchemaError(
            f"{part.path}@{part.version}: column {field.name!r} cannot be {field.type}: {reason}"
        )
        error.add_note("The type of the column was changed; begin with a new checkpoint.")
        raise error from None


def made_anew(path: str) -> TableError:
    """Another table is where one was."""
    error = TableError(f"the table {path} was deleted and made again since it was read")
    error.add_note("Begin a new checkpoint or without a state, or give the new table as another replica.")
    return error


def put_back(what: str) -> TableError:
    """A table is not what it was when it was read."""
    error = TableError(what)
    error.add_note(
        "An older copy of it was put in its place. Restore it, or begin a new checkpoint or without a state."
    )
    return error


@contextmanager
def _named(path: str, version: int) -> Iterator[None]:
    """What cannot be read of a version is said with its number and the way out."""
    try:
        yield
    except (DeltaError, pa.ArrowException, OSError, msgspec.MsgspecError) as reason:
        text = str(reason)
        if not is_logged(path, version) or "not found" in text or "No such file" in text:
            what = f"version {version} of {path} is no longer there: it was cleaned up before it was read"
            way = (
                "Keep versions for longer (delta.logRetentionDuration, delta.deletedFileRetentionDuration), "
                "and begin a new checkpoint or without a state, with start='snapshot'."
            )
        else:
            what = f"version {version} of {path} cannot be read: {_first_line(reason)}"
            way = (
                "Where the version is damaged, begin a new checkpoint or without a state, with "
                "start='snapshot'."
            )
        error = TableError(what)
        error.add_note(way)
        raise error from None


def _first_line(reason: BaseException) -> str:
    return next(iter(str(reason).splitlines()), type(reason).__name__)
