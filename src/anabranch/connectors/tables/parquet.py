"""A table of plain Parquet files that one query keeps: a folder for each version, and a link to the newest.

    prices/latest -> _versions/000000012                 what readers read
    prices/_versions/000000011/000000003-0.parquet
    prices/_versions/000000012/000000003-0.parquet       the same file, under a second name: a hard link
    prices/_versions/000000012/000000012-0.parquet       what came or changed
    prices/_versions/000000012/_about.json               whose table it is, and the last micro-batch in it

A micro-batch makes a folder: files that have no row that changes are linked, the others written anew without
it, and rows as they are now are one more file. When the folder is whole, the link is replaced, in one step.
A file never changes, and one of another version never has its name, so whoever lists ``latest`` reads one
version of the table or is told that a file is gone. A version is there for a time after the next one.

The micro-batch is in the folder, so one that runs again finds that it has been written. The table belongs to
the query that made it, and which table that was is in the checkpoint.

Cost: of a table of current values or of a history, the columns are read that name rows, in all files that may
have some; files with rows that change are written anew. Each version has a link for each of its files, so
small ones are put together every so many micro-batches.
"""

import base64
import os
import shutil
import time
import uuid
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from numpy.typing import NDArray

from anabranch.connectors.tables.micro_batch import MicroBatch
from anabranch.connectors.tables.table_error import (
    TableError,
    check_empty,
    not_made,
    not_ours,
    other_columns,
)
from anabranch.connectors.tables.views import FROM, Change, Changes, View, Wanted
from anabranch.engines.whole_file import whole_file

LATEST, VERSIONS, ABOUT = "latest", "_versions", "_about.json"
SMALL, LARGE = 32 << 20, 128 << 20
"""Bytes of a file that is put together with others, and of what becomes of them, about."""


class About(msgspec.Struct, frozen=True):
    """What a version says of itself."""

    table: str
    query: str
    kind: str
    settings: str
    version: int
    batch: int
    columns: str
    """An Arrow schema in base 64."""
    files: dict[str, int]
    """How many rows each has."""


@dataclass
class ParquetTarget:
    """A table, the query it belongs to, and what its rows are."""

    path: Path
    query: str
    view: View
    settings: str
    """What else the meaning of a row depends on."""
    mark: Path
    """A file of the checkpoint that says which table the query made."""
    compact_every: int | None = 100
    keep: timedelta = timedelta(hours=1)

    def check(self) -> None:
        """Raise where the table is not the one that this query keeps, or cannot be made here."""
        _check_types(self.view.schema)
        if self._is_there():
            self._latest()
        else:
            check_empty(self.path, "Parquet")

    def _is_there(self) -> bool:
        return self.mark.exists() or (self.path / LATEST).is_symlink()

    def prepare(self) -> None:
        """Make the table if it is not there, and check that it is the one that this query keeps."""
        self.check()
        if not self._is_there():
            columns = base64.b64encode(self.view.schema.serialize()).decode()
            made = About(uuid.uuid4().hex, self.query, self.view.kind, self.settings, -1, -1, columns, {})
            try:
                self._publish(made, -1, [], [])
            except OSError as reason:
                raise not_made(self.path, reason) from None
        with whole_file(str(self.mark)) as file:
            file.write(self._latest().table.encode())

    def written(self) -> int:
        """The last micro-batch that changed the table; -1 for none."""
        return self._latest().batch

    def write(self, batch: int, rows: MicroBatch) -> None:
        """Let a micro-batch change the table, unless it has."""
        now = self._latest()
        if now.batch >= batch:
            return
        changes = self.view.changes(rows, lambda wanted: self._found(now, wanted))
        if not len(changes):
            return
        kept, anew = self._without(now, changes)
        comes = changes.rows.filter(pa.array(changes.change != Change.DELETE))
        self._publish(now, batch, kept, [*anew, comes])

    def tend(self, batch: int) -> None:
        """Remove versions that are old, and put small files together where it is time for it."""
        now = self._latest()
        if self.compact_every is not None and (batch + 1) % self.compact_every == 0:
            small = self._small(now)
            if len(small) > 1:
                together = pa.concat_tables([self._read(now, name) for name in small])
                now = self._publish(now, now.batch, [n for n in now.files if n not in small], [together])
        self._forget(now)

    def _small(self, now: About) -> list[str]:
        """Files that are put together: the first of the small ones, as many as make a large one."""
        small, size = [], 0
        for name in now.files:
            mine = (self._place(now.version) / name).stat().st_size
            if mine < SMALL and size < LARGE:
                small.append(name)
                size += mine
        return small

    def _publish(self, now: About, batch: int, kept: list[str], tables: list[pa.Table]) -> About:
        """The next version: some files of this one and some new ones; readers see all of it or none."""
        version = now.version + 1
        place, part = self._place(version), self.path / VERSIONS / f".{version:09}"
        for left in (place, part):  # of a run that was cut short, and no reader was told of it
            shutil.rmtree(left, ignore_errors=True)
        part.mkdir(parents=True)
        for name in kept:
            _link(self._place(now.version) / name, part / name)
        files = {name: now.files[name] for name in kept}
        rows = [table for table in tables if table.num_rows]
        for number, table in enumerate(rows if rows or kept else [self.view.schema.empty_table()]):
            name = f"{version:09}-{number}.parquet"
            pq.write_table(table, part / name)
            files[name] = table.num_rows
        about = msgspec.structs.replace(now, version=version, batch=batch, files=files)
        (part / ABOUT).write_bytes(msgspec.json.encode(about))
        part.rename(place)
        link = self.path / f".{LATEST}"
        link.unlink(missing_ok=True)
        link.symlink_to(Path(VERSIONS) / place.name)
        link.replace(self.path / LATEST)
        return about

    def _without(self, now: About, changes: Changes) -> tuple[list[str], list[pa.Table]]:
        """The files that no row goes from, and what is left of the others."""
        files = [name for name, rows in now.files.items() if rows]
        old = changes.rows.filter(pa.array(changes.change != Change.INSERT))
        if not old.num_rows:
            return files, []
        by = list(self.view.by)
        gone = {tuple(row.values()) for row in old.select(by).to_pylist()}
        ids = old.column(by[0]).combine_chunks()
        between = pc.min_max(old.column(FROM)).values() if FROM in by else None
        kept, anew, found = [], [], 0
        for name in files:
            if not _named(self._some(now, name, by, between), ids, gone).any():
                kept.append(name)
                continue
            rows = self._read(now, name)
            goes = _named(rows.select(by), ids, gone)
            found += int(goes.sum())
            anew.append(rows.filter(pa.array(~goes)))
        assert found == old.num_rows, f"each change is of one row: {old.num_rows} changes, {found} rows"
        return kept, anew

    def _found(self, now: About, wanted: Wanted) -> pa.Table:
        """The rows of a version that are wanted."""
        columns = list(wanted.columns)
        parts = [pa.schema([self.view.schema.field(name) for name in columns]).empty_table()]
        for name, rows in now.files.items():
            if rows:
                table = self._some(now, name, columns, wanted.between)
                parts.append(table.filter(pc.is_in(table.column(wanted.column), wanted.ids)))
        return pa.concat_tables(parts)

    def _some(self, now: About, name: str, columns: list[str], between: Any) -> pa.Table:
        """Some columns of a file, and only the rows that are valid from a time between these."""
        bounds: Any = None
        if between is not None:
            least, greatest = between
            bounds = (ds.field(FROM) >= least) & (ds.field(FROM) <= greatest)
        rows = ds.dataset(self._place(now.version) / name, format="parquet").to_table(columns, filter=bounds)
        return rows.cast(pa.schema([self.view.schema.field(name) for name in columns]))

    def _read(self, now: About, name: str) -> pa.Table:
        return pq.ParquetFile(self._place(now.version) / name).read().cast(self.view.schema)

    def _place(self, version: int) -> Path:
        return self.path / VERSIONS / f"{version:09}"

    def _forget(self, now: About) -> None:
        """Remove versions that have not been the latest for longer than they are kept."""
        there = sorted(f for f in (self.path / VERSIONS).iterdir() if f.name.isdecimal())
        for old, newer in pairwise(there):
            age = time.time() - (newer / ABOUT).stat().st_mtime
            if int(old.name) < now.version and age > self.keep.total_seconds():
                shutil.rmtree(old)

    def _latest(self) -> About:
        """The newest version, if the table is the one that this query keeps."""
        try:
            about = msgspec.json.decode((self.path / LATEST / ABOUT).read_bytes(), type=About)
        except FileNotFoundError:
            raise not_ours(f"the table {self.path} that this query has written is gone") from None
        if self.mark.exists() and self.mark.read_text() != about.table:
            raise not_ours(f"{self.path} is not the table that this query has written, it was made anew")
        if about.query != self.query:
            raise not_ours(f"{self.path} is a table that this query did not make")
        for was, now in ((about.kind, self.view.kind), (about.settings, self.settings)):
            if was != now:
                raise not_ours(f"the table {self.path} was made as {was}, and this is {now}")
        there = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(about.columns)))
        if there != self.view.schema:
            raise other_columns(there, self.view.schema, self.path)
        return about


def _named(rows: pa.Table, ids: Any, gone: set[Any]) -> NDArray[np.bool_]:
    """Which rows have one of these keys; ``ids`` are the first columns of the keys."""
    named = pc.is_in(rows.column(0), ids).to_numpy().copy()
    near = np.flatnonzero(named)
    named[near] = [tuple(row.values()) in gone for row in rows.take(pa.array(near)).to_pylist()]
    return named


def _link(file: Path, name: Path) -> None:
    """A second name for a file, or a copy of it where a file has one name only."""
    try:
        os.link(file, name)
    except OSError:
        shutil.copyfile(file, name)


def _check_types(schema: pa.Schema) -> None:
    """Raise where Parquet has no type for a column."""
    for field in schema:
        try:
            if _without_type(field.type):
                raise pa.ArrowNotImplementedError("only Arrow would read it back")
            pq.write_table(pa.schema([field]).empty_table(), pa.BufferOutputStream())
        except pa.ArrowException as reason:
            error = TableError(
                f"column {field.name!r} is {field.type}, which Parquet does not hold: {reason}"
            )
            error.add_note("Cast the column or leave it out before the merge.")
            raise error from None


def _without_type(dtype: pa.DataType) -> bool:
    if pa.types.is_nested(dtype):
        return any(_without_type(dtype.field(n).type) for n in range(dtype.num_fields))
    return bool(pa.types.is_null(dtype) or pa.types.is_duration(dtype))
