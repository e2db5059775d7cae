"""Streams written to files, whole or not at all.

A file appears under its name when it is complete; until then it is a hidden file beside it, which is removed
if the writing fails or is interrupted.
"""

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anabranch.connectors.files.formats import STANDARD, Format, written_format
from anabranch.engines.whole_file import whole_file
from anabranch.model import json_lines, notation
from anabranch.model.arrow import laid_out, record_batch
from anabranch.model.batch import Batch
from anabranch.model.clock import Clock
from anabranch.model.clock_columns import time_type
from anabranch.model.dialects import DIALECTS
from anabranch.model.elements import Element, Tagged
from anabranch.model.json_lines import UnwritableError, json_payload
from anabranch.model.schema import Columns, SchemaError


@dataclass(frozen=True, slots=True)
class Target:
    """A file or standard output, and what is written to it."""

    path: str
    format: Format
    dialect: str | None = None
    as_text: bool = False
    """Values that JSON has no type for are written as text."""
    clock: Clock = Clock.TICKS
    """What ticks are: times are written as what they are; in dialects, as numbers."""

    @classmethod
    def named(
        cls,
        path: str,
        format: str | None = None,  # noqa: A002
        dialect: str | None = None,
        *,
        as_text: bool = False,
        clock: Clock = Clock.TICKS,
    ) -> "Target":
        """A target whose format is given or told by its name."""
        return cls(path, written_format(path, format, dialect), dialect, as_text, clock)

    def write(self, batches: Iterable[Batch]) -> int:
        """Write a stream; how many elements that was."""
        count = 0

        def counted() -> Iterator[Batch]:
            nonlocal count
            for batch in batches:
                count += len(batch)
                yield batch

        try:
            if self.format.is_lines:
                with whole(self.path) as file:
                    for line in self._lines(counted()):
                        file.write(line + b"\n")
            else:
                self._write_columns(counted())
        except pa.ArrowException as reason:
            raise ValueError(f"{self.path} cannot be written as {self.format.value}: {reason}") from None
        return count

    def _lines(self, batches: Iterable[Batch]) -> Iterator[bytes]:
        elements = (element for batch in batches for element in objects(_without_maps(batch)))
        if self.dialect is not None:
            dialect: Any = DIALECTS[self.dialect]
            for item in dialect.write(map(_of_one_stream, elements)):
                yield json.dumps(
                    json_payload(dialect.to_record(item), self.as_text), ensure_ascii=False
                ).encode()
        elif self.format is Format.NOTATION:
            for element in elements:
                yield notation.line_of(element, as_text=self.as_text, clock=self.clock).encode()
        else:
            for element in elements:
                yield json_lines.encode(element, as_text=self.as_text, clock=self.clock)

    def _write_columns(self, batches: Iterable[Batch]) -> None:
        """Batches wait in temporary files until all payload columns are known; then they become one file."""
        with contextlib.ExitStack() as stack:
            final = stack.enter_context(whole(self.path))
            parts: list[IO[bytes]] = []
            writer: Any = None
            waiting: pa.Schema | None = None
            payload = Columns.none()
            for batch in batches:
                if not len(batch):
                    continue
                payload = payload.with_rows(batch.payload)
                rows = _plain(record_batch(batch, nested=True, unit=time_type(self.clock)))
                if waiting is None or rows.schema != waiting:
                    if writer is not None:
                        writer.close()
                    waiting = rows.schema
                    parts.append(stack.enter_context(tempfile.TemporaryFile()))
                    writer = pa.ipc.new_stream(parts[-1], waiting)
                writer.write_batch(rows)
            if writer is not None:
                writer.close()
            self._join(parts, payload.schema, final)

    def _join(self, parts: list[IO[bytes]], payload: pa.Schema, final: IO[bytes]) -> None:
        readers = []
        for part in parts:
            part.seek(0)
            readers.append(pa.ipc.open_stream(part))
        if len({"input" in reader.schema.names for reader in readers}) > 1:
            raise SchemaError("either every element of a stream names its input or none does")
        rows = (laid_out(waiting, payload) for reader in readers for waiting in reader)
        first = next(rows, record_batch(Batch.of([]), unit=time_type(self.clock)))
        with self._writer(final, first.schema) as writer:
            for part in chain([first] if readers else [], rows):
                writer.write_batch(part)

    def _writer(self, final: IO[bytes], schema: pa.Schema) -> Any:
        if self.format is Format.PARQUET:
            return pq.ParquetWriter(final, schema, compression="zstd", use_dictionary=["kind", "input"])
        return pa.ipc.new_stream(final, schema) if self.path == STANDARD else pa.ipc.new_file(final, schema)


def unwritable(dtype: pa.DataType) -> str | None:
    """What lines have no words for in a type, however deep; None: they hold all of its values."""
    if pa.types.is_dictionary(dtype):
        return unwritable(dtype.value_type)
    for is_kind, what in (
        (pa.types.is_map, "maps"),
        (pa.types.is_decimal, "decimals"),
        (pa.types.is_binary, "bytes"),
        (pa.types.is_large_binary, "bytes"),
        (pa.types.is_binary_view, "bytes"),
        (pa.types.is_fixed_size_binary, "bytes"),
        (pa.types.is_interval, "intervals of months and days"),
    ):
        if is_kind(dtype):
            return what
    if getattr(dtype, "unit", None) == "ns":
        return "nanoseconds"
    found = (unwritable(dtype.field(n).type) for n in range(dtype.num_fields))
    return next((what for what in found if what is not None), None)


def check_finite(column: pa.Array) -> None:
    """Raise where a column of lines has a number that is not finite, however deep."""
    if pa.types.is_floating(column.type):
        odd = column.filter(pc.invert(pc.is_finite(column)))
        if len(odd):
            raise UnwritableError(odd[0].as_py())
    elif pa.types.is_struct(column.type):
        for inner in column.flatten():
            check_finite(inner)
    elif pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        check_finite(column.flatten())
    elif pa.types.is_map(column.type):
        check_finite(column.items)


def _without_maps(batch: Batch) -> Batch:
    maps = [field.name for field in batch.payload.schema if pa.types.is_map(field.type)]
    if maps:
        error = SchemaError(f"lines have no words for maps, payload column {maps[0]!r} holds them")
        error.add_note("Write Parquet or Arrow files, or make the column a list of structs.")
        raise error
    return batch


def _of_one_stream(element: Element | Tagged) -> Element:
    if isinstance(element, Tagged):
        error = ValueError(
            f"a dialect writes one stream, this one records inputs, {element.input!r} among them"
        )
        error.add_note("Take one of them out with --input NAME.")
        raise error
    return element


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


@contextlib.contextmanager
def whole(path: str) -> Iterator[IO[bytes]]:
    """A file to write to that appears under its name when all is written; standard output for ``-``."""
    if path == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with whole_file(path) as file:
        yield file
