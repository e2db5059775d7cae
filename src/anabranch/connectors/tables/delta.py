"""A Delta table that one query keeps: each micro-batch is one commit, which carries its number.

The number is a transaction of the query in Delta's own log, so a micro-batch that runs again finds that it
has been written. It is looked up and committed on one and the same handle: where another run of the query
commits in between, the handle is behind, the commit is refused, and tried again from what is there then.

The table belongs to the query that made it. Which that was is in its properties, and which table it was in
the checkpoint, so a table that was deleted, made anew or is another query's is found before anything is
written to it. Others may compact or vacuum it, and delete rows that will not change any more.

Upkeep: every so many micro-batches small files are put together, and files are removed that the table has not
referred to for a time. For so long readers of an older version are not disturbed.
"""

from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, DeltaProtocolError, TableNotFoundError

from anabranch.connectors.tables.micro_batch import MicroBatch
from anabranch.connectors.tables.table_error import (
    TableError,
    check_empty,
    not_made,
    not_ours,
    other_columns,
)
from anabranch.connectors.tables.views import FROM, Change, Changes, View, Wanted, check_names
from anabranch.engines.whole_file import whole_file

TRIES = 5
_LOOK_BACK = 100
"""Commits that are looked at when a query starts: those of others since it stopped."""
CHANGE = "_change"
_QUERY, _KIND, _SETTINGS = "anabranch.query", "anabranch.kind", "anabranch.settings"
_ALL_COLUMNS = {"delta.dataSkippingNumIndexedCols": "-1"}


@dataclass
class DeltaTarget:
    """A table, the query it belongs to, and what its rows are."""

    path: Path
    query: str
    view: View
    settings: str
    """What else the meaning of a row depends on."""
    mark: Path
    """A file of the checkpoint that says which table the query made."""
    compact_every: int | None = 100
    keep: timedelta = timedelta(days=7)
    looked: int = -1
    """The version up to which nobody was found to have set the table back."""

    def check(self) -> None:
        """Raise where the table is not the one that this query keeps, or cannot be made here."""
        delta_schema(self.view.schema)
        if self.view.by:
            check_names(self.view.schema.names, (CHANGE,), self.view.kind)
        if self._is_there():
            self._opened()
        else:
            check_empty(self.path, "Delta")

    def _is_there(self) -> bool:
        return self.mark.exists() or (self.path.is_dir() and DeltaTable.is_deltatable(str(self.path)))

    def prepare(self) -> None:
        """Make the table if it is not there, and check that it is the one that this query keeps."""
        self.check()
        if not self._is_there():
            schema = delta_schema(self.view.schema)
            properties = {_QUERY: self.query, _KIND: self.view.kind, _SETTINGS: self.settings, **_ALL_COLUMNS}
            try:
                DeltaTable.create(
                    self.path, schema=schema, configuration=properties, raise_if_key_not_exists=False
                )
            except (DeltaError, OSError) as reason:
                raise not_made(self.path, reason) from None
        with whole_file(str(self.mark)) as file:
            file.write(str(self._opened().metadata().id).encode())

    def written(self) -> int:
        """The last micro-batch that changed the table; -1 for none."""
        found = self._opened().transaction_version(self.query)
        return -1 if found is None else int(found)

    def write(self, batch: int, rows: MicroBatch) -> None:
        """Let a micro-batch change the table, unless it has; a commit that is raced is tried again."""
        refused: CommitFailedError | None = None
        for _ in range(TRIES):
            table = self._opened()
            self._check_not_restored(table)
            written = table.transaction_version(self.query)
            if written is not None and written >= batch:
                return
            try:
                changes = self.view.changes(rows, partial(_found, table))
                if len(changes):
                    self._commit(table, changes, batch)
                return
            except CommitFailedError as reason:
                refused = reason
            except DeltaProtocolError as reason:
                raise _unreadable(self.path, reason) from None
        error = TableError(
            f"micro-batch {batch} could not be written to {self.path} in {TRIES} tries: {refused}"
        )
        error.add_note("Others write to the table at the same time. Stop them, then start the query again.")
        raise error

    def _check_not_restored(self, table: DeltaTable) -> None:
        """Raise where someone has set the table back to before rows that this query wrote."""
        now = table.version()
        fresh = min(now - self.looked, _LOOK_BACK)
        if fresh <= 0:
            return
        back = next((one for one in table.history(fresh) if one["operation"] == "RESTORE"), None)
        if back is not None:
            to, at = _restored_to(back), back["version"]
            since = (one for one in table.history(now - to) if one["version"] < at)
            lost = any(one["operation"] in ("WRITE", "MERGE") for one in since)
            if lost:
                error = TableError(
                    f"the table {self.path} was restored to version {to}, and had more rows since"
                )
                error.add_note(
                    f"Restore it to version {at - 1}, and the query goes on; or begin with a new table and a "
                    "new checkpoint."
                )
                raise error
        self.looked = now

    def tend(self, batch: int) -> None:
        """Put small files together and remove old ones, where it is time for it."""
        if self.compact_every is None or (batch + 1) % self.compact_every:
            return
        hours = -(-self.keep // timedelta(hours=1))
        table = self._opened()
        try:
            table.optimize.compact()
            table.vacuum(retention_hours=hours, enforce_retention_duration=False, dry_run=False, full=True)
        except CommitFailedError:  # someone else is at it
            return

    def _commit(self, table: DeltaTable, changes: Changes, batch: int) -> None:
        once = CommitProperties(app_transactions=[Transaction(self.query, batch)])
        if changes.only_inserts:
            write_deltalake(table, changes.rows, mode="append", commit_properties=once)
            return
        columns = {_quoted(name): f"s.{_quoted(name)}" for name in self.view.schema.names}
        changed = changes.rows.append_column(CHANGE, pa.array(changes.change))
        same = " AND ".join(f"t.{name} = s.{name}" for name in self.view.by)
        # Not streamed, so that the least and greatest values of the changes choose the files that are read.
        merger = table.merge(
            changed, same, source_alias="s", target_alias="t", streamed_exec=False, commit_properties=once
        )
        done = (
            merger.when_matched_delete(f"s.{CHANGE} = {Change.DELETE:d}")
            .when_matched_update(columns, f"s.{CHANGE} = {Change.UPDATE:d}")
            .when_not_matched_insert(columns, f"s.{CHANGE} = {Change.INSERT:d}")
            .execute()
        )
        made = sum(done[f"num_target_rows_{what}"] for what in ("inserted", "updated", "deleted"))
        assert made == len(changes), f"each change is of one row: {len(changes)} changes, {made} rows"

    def _opened(self) -> DeltaTable:
        """The table as it is now, if it is the one that this query keeps."""
        try:
            table = DeltaTable(self.path)
        except TableNotFoundError:
            raise not_ours(f"the table {self.path} that this query has written is gone") from None
        about = table.metadata()
        if self.mark.exists() and self.mark.read_text() != str(about.id):
            raise not_ours(f"{self.path} is not the table that this query has written, it was made anew")
        properties = about.configuration
        if properties.get(_QUERY) != self.query:
            raise not_ours(f"{self.path} is a table that this query did not make")
        for name, now in ((_KIND, self.view.kind), (_SETTINGS, self.settings)):
            if properties[name] != now:
                raise not_ours(f"the table {self.path} was made as {properties[name]}, and this is {now}")
        there, ours = table.schema(), delta_schema(self.view.schema)
        if there != ours:
            raise other_columns(pa.schema(there.to_arrow()), pa.schema(ours.to_arrow()), self.path)
        return table


def _restored_to(commit: dict[str, Any]) -> int:
    """Which version a commit has set a table back to; 0 where only a time is known."""
    told = commit.get("operationParameters", {}).get("version")
    return int(told) if str(told).isdecimal() else 0


def delta_schema(schema: pa.Schema) -> Schema:
    """The columns of a table as Delta knows them; raises where it does not."""
    for field in schema:
        reason = _unknown(field.type)
        if reason:
            error = TableError(f"column {field.name!r} is {field.type}, and a Delta table holds no {reason}")
            error.add_note("Cast the column or leave it out before the merge, or use write_folder.")
            raise error
    try:
        return Schema.from_arrow(schema)
    except Exception as reason:  # which is what it raises
        raise TableError(f"Delta has no table of these columns: {str(reason).splitlines()[0]}") from None


def _unknown(dtype: pa.DataType) -> str | None:
    """What in a type Delta does not know, if anything."""
    if pa.types.is_nested(dtype):
        parts = [dtype.field(n).type for n in range(dtype.num_fields)]
        if not parts:
            return "structs without fields"
        return next((reason for part in parts if (reason := _unknown(part))), None)
    if pa.types.is_null(dtype):
        return "columns without a type"
    try:
        Schema.from_arrow(pa.schema([pa.field("column", dtype)]))
    except Exception:
        return f"{dtype}"
    return None


def _unreadable(path: Path, reason: Exception) -> TableError:
    error = TableError(f"the table {path} has been given features that deltalake does not know: {reason}")
    error.add_note("Take them off the table (DROP FEATURE), or begin with a new table and a new checkpoint.")
    return error


def _found(table: DeltaTable, wanted: Wanted) -> pa.Table:
    """The rows of a table that are wanted.

    Only times are compared by the scan: the text and bytes that a MERGE writes are of view types, which Arrow
    26 has no comparisons for.
    """
    between: Any = None
    if wanted.between is not None:
        least, greatest = wanted.between
        between = (ds.field(FROM) >= least) & (ds.field(FROM) <= greatest)
    columns = list(wanted.columns)
    dataset = table.to_pyarrow_dataset()
    parts = [
        batch.filter(pc.is_in(batch.column(wanted.column), wanted.ids))
        for batch in dataset.to_batches(columns=columns, filter=between)
    ]
    return pa.Table.from_batches(parts, pa.schema([dataset.schema.field(name) for name in columns]))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
