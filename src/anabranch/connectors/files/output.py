"""What comes out of a plan, written by this process: whole files, and nothing else.

A folder has a file for so many elements, and their stable after them, named as a query of Spark's names them:

    5c1f9a02-000000012-0000.parquet
    5c1f9a02-000000012-stable.parquet

A file appears under its name when it is complete. Whatever stops the process, those that are there are whole,
and say together what came out first.
"""

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.connectors.files.formats import STANDARD, written_format
from anabranch.connectors.files.writing import Target, check_finite, unwritable
from anabranch.engines.whole_file import whole_file
from anabranch.model.batch import Batch, Kind, concat
from anabranch.model.clock_columns import clock_of, time_type
from anabranch.model.schema import SchemaError, conformed
from anabranch.plan.stream import Stream
from anabranch.rows.text import text_of

ELEMENTS = 65_536
"""Elements of one file of a folder, about."""
FORMATS = ("parquet", "jsonl", "arrow")


@dataclass(frozen=True, slots=True)
class FileOutput:
    """One file, or standard output."""

    path: str
    format: str | None = None

    def write(self, batches: Iterable[Batch], stream: Stream) -> int:
        """Write a stream, all or nothing; how many elements that was."""
        form = written_format(self.path, self.format, None)
        clock = clock_of(stream.node.clock)
        return Target(self.path, form, None, self.path == STANDARD, clock).write(batches)

    def check(self, schema: pa.Schema | None = None) -> None:
        """Raise where its name tells no format, or the format holds no values of a column."""
        form = written_format(self.path, self.format, None)
        for field in schema if schema is not None and form.is_lines else ():
            if (kind := unwritable(field.type)) is not None:
                what = "standard output is" if self.path == STANDARD else f"{self.path} is"
                error = SchemaError(
                    f"lines hold no {kind}, column {field.name!r} is {field.type}, and {what} {form.value}"
                )
                error.add_note('Write a file that ends in .parquet or .arrow: file = "out.parquet".')
                error.add_note(_cast(field, kind))
                raise error


def _cast(field: pa.Field, kind: str) -> str:
    """How a column is made one that lines hold."""
    text, to = "text", "string"
    if kind == "nanoseconds" and not pa.types.is_nested(field.type):
        text, to = "microseconds", str(field.type).replace("[ns", "[us", 1)
    return f"Or cast the column to {text}: with_columns({field.name}=col({field.name!r}).cast({to!r}))."


@dataclass(frozen=True, slots=True)
class FolderOutput:
    """A folder of files."""

    path: Path
    format: str = "parquet"
    elements: int = ELEMENTS

    def check(self, schema: pa.Schema | None = None) -> None:
        """Raise where something is in the folder, as two streams are not told apart in one, or where lines
        hold no values of a column.
        """
        for field in schema if schema is not None and self.format == "jsonl" else ():
            if unwritable(field.type) == "nanoseconds":
                refused = SchemaError(
                    f"lines hold no nanoseconds, column {field.name!r} is {field.type}, and files of "
                    f"{self.path} are jsonl"
                )
                refused.add_note('Write another format: format = "parquet".')
                refused.add_note(_cast(field, "nanoseconds"))
                raise refused
        files = sorted(file.name for file in self.path.iterdir()) if self.path.is_dir() else []
        others = [name for name in files if name[0] not in "._"]
        if others:
            error = FileExistsError(f"{self.path} has files already, {others[0]} among them")
            error.add_note("Name another folder, or move them away: a run without Spark begins anew.")
            raise error

    def write(self, batches: Iterable[Batch], stream: Stream) -> int:
        """Write a stream, file by file; how many elements that was."""
        self.check(stream.schema)
        self.path.mkdir(parents=True, exist_ok=True)
        query, count = uuid.uuid4().hex[:8], 0
        clock = clock_of(stream.node.clock)
        for number, batch in enumerate(_together(batches, self.elements)):
            stables = batch.kind == Kind.STABLE
            for what, some in (("0000", batch.take(~stables)), ("stable", batch.take(stables)[-1:])):
                if len(some):
                    rows = _in_columns(some, stream.schema)
                    name = f"{query}-{number:09}-{what}.{self.format}"
                    self._write(self.path / name, rows.to_arrow(unit=time_type(clock)))
            count += len(batch)
        return count

    def _write(self, path: Path, rows: pa.RecordBatch) -> None:
        with whole_file(str(path)) as file:
            match self.format:
                case "parquet":
                    pq.write_table(pa.Table.from_batches([rows]), file, compression="zstd")
                case "arrow":
                    with pa.ipc.new_file(file, rows.schema) as writer:
                        writer.write_batch(rows)
                case _:
                    for column in rows.columns:
                        check_finite(column)
                    lines: list[Any] = rows.to_pylist(maps_as_pydicts="strict")
                    file.writelines(f"{text_of(row)}\n".encode() for row in lines)


def _in_columns(batch: Batch, schema: pa.Schema) -> Batch:
    """The elements in the columns of a stream; one of elements of any columns has no columns of its own."""
    return batch.with_payload(conformed(batch.payload, schema)) if len(schema) else batch


def _together(batches: Iterable[Batch], elements: int) -> Iterator[Batch]:
    """The same elements in batches of at least so many, but for the last."""
    waiting: list[Batch] = []
    for batch in batches:
        if len(batch):
            waiting.append(batch)
        if sum(map(len, waiting)) >= elements:
            yield concat(waiting)
            waiting = []
    if waiting:
        yield concat(waiting)
