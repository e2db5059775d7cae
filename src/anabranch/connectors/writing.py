"""Streams written to files, whole or not at all.

A file appears under its name when it is complete; until then it is a hidden file beside it, which is removed
if the writing fails or is interrupted.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.connectors.formats import STANDARD, Format, format_of
from anabranch.model import json_lines, notation
from anabranch.model.batch import Batch
from anabranch.model.dialects import DIALECTS
from anabranch.model.elements import Element, Tagged


@dataclass(frozen=True, slots=True)
class Target:
    """A file or standard output, and what is written to it."""

    path: str
    format: Format
    dialect: str | None = None
    as_text: bool = False
    """Values that JSON has no type for are written as text."""

    @classmethod
    def named(
        cls,
        path: str,
        format: str | None = None,  # noqa: A002
        dialect: str | None = None,
        *,
        as_text: bool = False,
    ) -> "Target":
        """A target whose format is given or told by its name."""
        return cls(path, Format(format) if format else format_of(path), dialect, as_text)

    def write(self, batches: Iterable[Batch]) -> int:
        """Write a stream; how many elements that was."""
        count = 0

        def counted() -> Iterator[Batch]:
            nonlocal count
            for batch in batches:
                count += len(batch)
                yield batch

        if self.format.is_lines:
            with _whole(self.path) as file:
                for line in self._lines(counted()):
                    file.write(line + b"\n")
        else:
            self._write_columns(counted())
        return count

    def _lines(self, batches: Iterable[Batch]) -> Iterator[bytes]:
        elements = (element for batch in batches for element in objects(batch))
        if self.dialect is not None:
            dialect: Any = DIALECTS[self.dialect]
            for item in dialect.write(elements):
                yield json.dumps(dialect.to_record(item), ensure_ascii=False).encode()
        elif self.format is Format.NOTATION:
            yield from (notation.line_of(element).encode() for element in elements)
        else:
            yield from (json_lines.encode(element, as_text=self.as_text) for element in elements)

    def _write_columns(self, batches: Iterable[Batch]) -> None:
        """One part per run of batches with equal schemas; several parts become one with all columns."""
        with contextlib.ExitStack() as stack:
            final = stack.enter_context(_whole(self.path))
            parts: list[Any] = []
            writer: Any = None
            schema: pa.Schema | None = None
            for batch in batches:
                rows = _plain(batch.to_arrow())
                if schema is None or not rows.schema.equals(schema):
                    if writer is not None:
                        writer.close()
                    schema = rows.schema
                    parts.append(stack.enter_context(_temporary_file()))
                    writer = pa.ipc.new_stream(parts[-1], schema)
                writer.write_batch(rows)
            if writer is not None:
                writer.close()
            self._join(parts, final)

    def _join(self, parts: list[IO[bytes]], final: IO[bytes]) -> None:
        readers = []
        for part in parts:
            part.seek(0)
            readers.append(pa.ipc.open_stream(part))
        if not readers:
            readers = [pa.RecordBatchReader.from_batches(_EMPTY.schema, [_EMPTY])]
        schema = pa.unify_schemas([reader.schema for reader in readers], promote_options="permissive")
        if self.format is Format.PARQUET:
            writer: Any = pq.ParquetWriter(
                final, schema, compression="zstd", use_dictionary=["kind", "input"]
            )
        else:
            writer = (
                pa.ipc.new_stream(final, schema) if self.path == STANDARD else pa.ipc.new_file(final, schema)
            )
        with writer:
            for reader in readers:
                for rows in reader:
                    writer.write_table(_promoted(rows, schema))


_EMPTY = Batch.of([]).to_arrow()


def objects(batch: Batch) -> Iterator[Element | Tagged]:
    """The elements of a batch as objects, tagged if the batch is."""
    return batch.elements() if batch.input is None else batch.tagged()


def _plain(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Names as plain text: the dictionaries of different batches differ."""
    for name in ("kind", "input"):
        if name in rows.schema.names:
            place = rows.schema.get_field_index(name)
            rows = rows.set_column(place, name, rows.column(place).cast(pa.string()))
    return rows


def _promoted(rows: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """The rows with all columns of the schema, in its types."""
    table = pa.Table.from_batches([rows])
    if rows.schema == schema:
        return table
    return pa.concat_tables([schema.empty_table(), table], promote_options="permissive").combine_chunks()


@contextlib.contextmanager
def _whole(path: str) -> Iterator[IO[bytes]]:
    if path == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    hidden = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with hidden.open("wb") as file:
            yield file
        hidden.replace(target)
    finally:
        hidden.unlink(missing_ok=True)


@contextlib.contextmanager
def _temporary_file() -> Iterator[IO[bytes]]:
    import tempfile

    with tempfile.TemporaryFile() as file:
        yield file
