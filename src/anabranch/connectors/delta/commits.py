"""What the log of a Delta table has of a version: when it was committed, and the files of what it changed.

A version names files of changes or, where it needs none, the files that it added and removed. They are read
one after the other, so a version gives the same rows in the same order and pieces whenever it is read. The
feed that `deltalake` gives has the same rows, those of several partitions in another order each time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from zlib import crc32

import msgspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs

from anabranch.connectors.tables.table_error import TableError

FEED = "delta.enableChangeDataFeed"
ROWS = 16_384
"""Rows of a piece, at most."""
_CHANGE = "_change_type"
_GOES, _COMES = ["delete", "update_preimage"], ["insert", "update_postimage"]
_PARQUET = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))


class _File(msgspec.Struct, rename="camel"):
    path: str
    partition_values: dict[str, str | None] | None = None
    data_change: bool = True
    deletion_vector: dict[str, Any] | None = None


class _Metadata(msgspec.Struct):
    configuration: dict[str, str | None] = {}


class _Info(msgspec.Struct, rename="camel"):
    timestamp: int | None = None
    in_commit_timestamp: int | None = None


class _Action(msgspec.Struct, rename="camel"):
    add: _File | None = None
    remove: _File | None = None
    cdc: _File | None = None
    meta_data: _Metadata | None = None
    commit_info: _Info | None = None


_ACTIONS = msgspec.json.Decoder(_Action)


class Commit:
    """A version in the log of the table in a folder."""

    def __init__(self, path: str, version: int) -> None:
        self.path, self.version = Path(path), version
        log = _log(path, version)
        self._actions = _ACTIONS.decode_lines(log.read_bytes())
        infos = [one.commit_info for one in self._actions if one.commit_info is not None]
        times = [time for one in infos for time in (one.in_commit_timestamp, one.timestamp) if time]
        self.time = times[0] if times else log.stat().st_mtime_ns // 1_000_000
        """When it was committed, in milliseconds."""

    def changes(self, columns: pa.Schema, partitions: Sequence[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows that went, then those that came, with what happened to them.

        ``partitions``: the columns that stand in the log, once for each file.
        """
        self._check_feed()
        mixed = [one.cdc for one in self._actions if one.cdc is not None]
        removed = [] if mixed else self._changed(one.remove for one in self._actions)
        added = [] if mixed else self._changed(one.add for one in self._actions)
        with_change = columns.append(pa.field(_CHANGE, pa.string()))
        for op, images, files in (("delete", _GOES, removed), ("insert", _COMES, added)):
            which, schema = (ds.field(_CHANGE).isin(images), with_change) if mixed else (None, columns)
            for file in mixed or files:
                rows = self._fragment(file, columns, partitions)
                yield from ((op, one) for one in batches(rows, schema, which))

    def _changed(self, files: Iterable[_File | None]) -> list[_File]:
        changed = [one for one in files if one is not None and one.data_change]
        if any(one.deletion_vector is not None for one in changed):
            raise self._error(
                "changed rows by deletion vectors, and has no files of changes",
                "Write without delta.enableDeletionVectors, and begin after that version.",
            )
        return changed

    def _check_feed(self) -> None:
        settings = [one.meta_data.configuration for one in self._actions if one.meta_data is not None]
        if any((one.get(FEED) or "").lower() != "true" for one in settings):
            error = TableError(f"the change data feed of {self.path} was off at version {self.version}")
            error.add_note("Begin at a version since when it has been on, or with start='snapshot'.")
            raise error

    def _error(self, what: str, way: str) -> TableError:
        error = TableError(f"version {self.version} of {self.path} {what}")
        error.add_note(way)
        return error

    def _fragment(self, file: _File, columns: pa.Schema, partitions: Sequence[str]) -> ds.Fragment:
        if file.partition_values is None and partitions:
            raise self._error(
                f"does not say which {partitions[0]!r} the rows of {file.path} have",
                "Write the table with a program that logs partitionValues of removed files.",
            )
        parts = urlsplit(file.path)
        place = self.path / unquote(parts.path if parts.scheme == "file" else file.path)
        return _PARQUET.make_fragment(
            str(place),
            filesystem=pa.fs.LocalFileSystem(),
            partition_expression=_constants(file.partition_values or {}, columns),
        )


def batches(
    rows: ds.Fragment, schema: pa.Schema, which: ds.Expression | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a file in the columns of a table, piece by piece."""
    for one in rows.to_batches(schema=schema, filter=which, batch_size=ROWS, batch_readahead=1):
        if one.num_rows:
            yield one


def checksum(path: str, version: int) -> int:
    """What the log of a version is known again by; 0 where it is not there."""
    try:
        return crc32(_log(path, version).read_bytes())
    except FileNotFoundError:
        return 0


def is_logged(path: str, version: int) -> bool:
    """Whether the log still has a version."""
    return _log(path, version).exists()


def _log(path: str, version: int) -> Path:
    return Path(path) / "_delta_log" / f"{version:020}.json"


def _constants(values: Mapping[str, str | None], columns: pa.Schema) -> ds.Expression:
    """The values that all rows of a file have in the columns by which a table is partitioned."""
    found = ds.scalar(True)
    for name, text in values.items():
        if name in columns.names:
            column = ds.field(name)
            value = _value(text, columns.field(name).type)
            found = found & (column == value if value.is_valid else column.is_null())
    return found


def _value(text: str | None, kind: pa.DataType) -> pa.Scalar:
    """A value as the log writes it; a time without a zone is of UTC."""
    if not text:
        return pa.scalar(None, kind)
    if pa.types.is_timestamp(kind):
        return pa.scalar(text.removesuffix("Z")).cast(pa.timestamp("us")).cast(kind)
    return pa.scalar(text).cast(kind)
