"""Plain rows in files: Parquet, Arrow, JSON lines and CSV, in ranges that can be read by themselves."""

import codecs
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import IO, Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.typing import NDArray

from anabranch.connectors.files.csv_header import csv_header, separator_note
from anabranch.connectors.files.csv_records import record_blocks
from anabranch.connectors.files.csv_rows import CsvRows
from anabranch.connectors.files.debezium import Debezium
from anabranch.connectors.files.formats import Format, format_of
from anabranch.connectors.files.json_rows import JsonRows, json_rows
from anabranch.connectors.files.parquet_times import instants_in, parquet_schema, with_instants
from anabranch.connectors.files.sampled_columns import csv_columns, with_text
from anabranch.model.schema import SchemaError
from anabranch.model.spelling import did_you_mean
from anabranch.model.validity import Rule
from anabranch.model.zones import cast
from anabranch.rows.layout import Layout
from anabranch.rows.reading import Place, Read, read_rows
from anabranch.rows.refusal import Refusal
from anabranch.rows.row_keys import RowKeys

REPLICA = "replica"
"""The column that holds the name of the folder of each row."""
FILE_ROWS = 1 << 40
"""More rows than a file has: the sequence of a row is its file's number and its own."""
LINES = 16_384
_BEFORE = 256
"""Bytes before a place that it is known again by."""


@dataclass(frozen=True, slots=True)
class FileRange:
    """Some of the rows of a file: a range of row groups of Parquet, all of any other."""

    replica: str
    path: str
    number: int
    """Of the file among those of its replica."""
    in_folder: bool = True
    """It is in the folder of its replica; else its rows say whose they are."""
    named_in: str = REPLICA
    """The column that holds the name of the folder, where the file does not say it."""
    first: int = 0
    groups: tuple[int, int] | None = None
    changed: int | None = None
    """When the file had changed last as it was chosen, in microseconds."""
    envelopes: Debezium | None = None
    """Lines are envelopes of this form; None: rows."""
    begin: int = 0
    """The first byte that is read, of lines."""
    end: int | None = None
    """The byte before which reading ends, where lines may have been appended since."""
    mark: int = 0
    """What `end_mark` knows that place by."""


@contextmanager
def _named(path: str) -> Iterator[None]:
    """What Arrow says about a file is said with its name."""
    try:
        yield
    except (OSError, pa.ArrowException) as reason:
        error = OSError(f"{path} cannot be read: {str(reason).splitlines()[0]}")
        error.add_note("Mend the file, or put it back. Files appear whole: write elsewhere, then rename.")
        raise error from None


def last_changed(path: str | Path) -> int:
    """When a file changed last, in microseconds."""
    return Path(path).stat().st_mtime_ns // 1000


def _check_unchanged(part: FileRange) -> None:
    """Raise where a file is not the one that was chosen: what was read of it may be of both."""
    if part.changed is None or last_changed(part.path) == part.changed:
        return
    if part.end is None or not has_grown(part.path, part.end, part.mark):
        raise OSError("it was written to after it was chosen to be read")


def end_mark(file: str | Path, end: int) -> int:
    """A checksum of the last bytes before a place, by which it is known again."""
    with Path(file).open("rb") as data:
        data.seek(max(end - _BEFORE, 0))
        return crc32(data.read(min(_BEFORE, end)))


def has_grown(file: str | Path, end: int, mark: int) -> bool:
    """Something was appended to what ended there, and nothing else is known to have changed."""
    return Path(file).stat().st_size > end and end_mark(file, end) == mark


def file_schema(path: str) -> pa.Schema:
    """The columns of a Parquet or Arrow file, or of one of CSV as its first rows have them."""
    with _named(path):
        if format_of(path) is Format.CSV:
            return with_text(csv_columns(path))
        if format_of(path) is Format.PARQUET:
            return parquet_schema(path)
        with pa.memory_map(path) as source:
            return _arrow_reader(source).schema.remove_metadata()


def rows_of_file(path: str) -> int:
    """How many rows a file has; of text, how many lines."""
    with _named(path):
        return _rows_of_file(path)


def _rows_of_file(path: str) -> int:
    match format_of(path):
        case Format.PARQUET:
            return int(pa.parquet.read_metadata(path).num_rows)
        case Format.ARROW:
            with pa.memory_map(path) as source:
                return sum(batch.num_rows for batch in _arrow_batches(source))
        case _:
            with Path(path).open("rb") as file:
                return sum(1 for _ in file)


def ranges(file: FileRange, pieces: int) -> Iterator[FileRange]:
    """A whole file in at most so many pieces of about the same size."""
    if pieces <= 1 or format_of(file.path) is not Format.PARQUET:
        yield file
        return
    with _named(file.path):
        metadata = pa.parquet.read_metadata(file.path)
    groups = metadata.num_row_groups
    bounds = sorted({groups * n // pieces for n in range(pieces + 1)})
    first = 0
    for begin, end in pairwise(bounds):
        yield replace(file, first=first, groups=(begin, end))
        first += sum(metadata.row_group(n).num_rows for n in range(begin, end))
    if groups == 0:
        yield file


def reads(
    group: list[FileRange],
    columns: pa.Schema,
    layout: Layout,
    rows: int,
    size: int,
    keys: RowKeys | None = None,
) -> Iterator[list[Read]]:
    """What several ranges say, a batch of each in turn, so that copies of an event are together.

    ``rows`` is how many all together say in a turn, fewer where they are wide. ``keys`` counts those of JSON.
    """
    widest = max((_row_bytes(part) for part in group), default=1)
    each = -(-min(rows, max(-(-size // widest), 1)) // len(group))
    for turn in zip_longest(*(_reads(part, columns, layout, each, keys) for part in group)):
        yield [read for read in turn if read is not None]


def _row_bytes(part: FileRange) -> int:
    """Bytes of a row, about, where the file says it."""
    if format_of(part.path) is not Format.PARQUET:
        return 1
    with _named(part.path):
        metadata = pa.parquet.read_metadata(part.path)
    groups = range(*(part.groups or (0, metadata.num_row_groups)))
    size = sum(metadata.row_group(n).total_byte_size for n in groups)
    return max(size // max(sum(metadata.row_group(n).num_rows for n in groups), 1), 1)


def _reads(
    part: FileRange, columns: pa.Schema, layout: Layout, rows: int, keys: RowKeys | None
) -> Iterator[Read]:
    row, before = part.first, part.number * FILE_ROWS
    for batch, lines, refused in _named_batches(part, columns, rows, keys):
        read = read_rows(layout, batch, _FilePlace(part.path, row + 1, before + row, lines=lines))
        unknown = not part.in_folder and layout.replica is not None
        read.refused.extend(replace(one, replica="") if unknown else one for one in refused)
        yield read
        row += batch.num_rows


@dataclass(frozen=True, slots=True)
class _FilePlace(Place):
    """Rows of a file, whose place in the order of their replica is their row or line of it."""

    lines: list[int] | None = None
    """The line of each row, where that is not the first and those after it."""

    def sequences(self, count: int) -> NDArray[np.int64]:
        """The number of each row in the order of its replica."""
        if self.lines is None:
            return np.arange(self.sequence, self.sequence + count)
        return np.array(self.lines, np.int64) + (self.sequence - self.first)

    def of(self, row: int) -> str:
        """The place of one row."""
        return f"{self.source}:{self.first + row if self.lines is None else self.lines[row]}"


Decoded = tuple[pa.RecordBatch, list[int] | None, list[Refusal]]


def _named_batches(part: FileRange, columns: pa.Schema, rows: int, keys: RowKeys | None) -> Iterator[Decoded]:
    with _named(part.path):
        _check_unchanged(part)
        yield from _batches(part, columns, rows, keys)
        _check_unchanged(part)


def _batches(part: FileRange, columns: pa.Schema, rows: int, keys: RowKeys | None) -> Iterator[Decoded]:
    if part.envelopes is not None and format_of(part.path) is not Format.JSON_LINES:
        error = SchemaError(f"envelopes are JSON lines, and {part.path} is {format_of(part.path).value}")
        error.add_note("Move the file away, or read its folder without format='debezium'.")
        raise error
    match format_of(part.path):
        case Format.PARQUET:
            with pa.parquet.ParquetFile(part.path) as file:
                begin, end = part.groups or (0, file.num_row_groups)
                own = [field.name for field in columns if field.metadata != _BY_FOLDER]
                names = [name for name in own if name in file.schema_arrow.names]
                parts = file.iter_batches(rows, row_groups=list(range(begin, end)), columns=names)
                known = instants_in(file)
                for batch in parts if begin < end else ():
                    yield _as_told(with_instants(batch, known), columns, part), None, []
        case Format.ARROW:
            with pa.memory_map(part.path) as source:
                for batch in _arrow_batches(source):
                    yield _as_told(batch, columns, part), None, []
        case Format.CSV:
            yield from _csv_batches(part, columns, keys)
        case _:
            yield from _json_batches(part, columns, keys)


def _arrow_reader(source: Any) -> Any:
    """A file of either form of Arrow's."""
    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)


def _arrow_batches(source: Any) -> Iterator[pa.RecordBatch]:
    reader = _arrow_reader(source)
    if isinstance(reader, pa.ipc.RecordBatchFileReader):
        yield from (reader.get_batch(n) for n in range(reader.num_record_batches))
    else:
        yield from reader


def _json_batches(part: FileRange, columns: pa.Schema, keys: RowKeys | None) -> Iterator[Decoded]:
    own = pa.schema([field for field in columns if field.metadata != _BY_FOLDER])
    line = part.first
    with Path(part.path).open("rb") as file:
        file.seek(part.begin)
        while lines := _lines(file, part.end):
            if line == 0:
                lines[0] = lines[0].removeprefix(codecs.BOM_UTF8)
            numbers = [line + n for n, text in enumerate(lines, 1) if text.strip()]
            texts = lines if len(numbers) == len(lines) else [lines[n - line - 1] for n in numbers]
            if keys is not None and part.envelopes is None:
                keys.add_texts(texts)
            found = _found([text.rstrip(b"\r\n") for text in texts], own, part.envelopes)
            refused = [_refusal(part, numbers[n], texts[n], reason) for n, reason in found.refused]
            if found.origin is not None:
                numbers = [numbers[n] for n in found.origin]
            yield _as_told(found.rows, columns, part), numbers, refused
            line += len(lines)


def _csv_batches(part: FileRange, columns: pa.Schema, keys: RowKeys | None) -> Iterator[Decoded]:
    own = pa.schema([field for field in columns if field.metadata != _BY_FOLDER])
    with Path(part.path).open("rb") as file:
        header = csv_header(file, part.path)
        if header is None:
            return
        for name in own.names:
            if name not in header.names and not (name == part.named_in and part.in_folder):
                raise _no_column(part, name, header.names)
        rows = CsvRows(header.names, own, part.path)
        file.seek(max(part.begin, header.end))
        before = part.first if part.begin > header.end else header.lines
        for block in record_blocks(file, before, part.end):
            texts, lines = header.rows_in(block)
            if keys is not None:
                keys.join(RowKeys(len(texts), Counter(dict.fromkeys(header.names, len(texts)))))
            found = rows.read(texts)
            refused = [_refusal(part, lines[n], texts[n], reason) for n, reason in found.refused]
            yield _as_told(found.rows, columns, part), [lines[n] for n in found.origin], refused


def _refusal(part: FileRange, line: int, text: bytes, reason: str) -> Refusal:
    raw = text.decode(errors="replace").rstrip("\r\n")
    return Refusal(Rule.MALFORMED.value, reason, part.replica, f"{part.path}:{line}", raw)


def _found(texts: list[bytes], columns: pa.Schema, envelopes: Debezium | None) -> JsonRows:
    """The rows of lines, or those that envelopes hold."""
    if envelopes is None:
        return json_rows(texts, columns)
    values = envelopes.read(texts, columns)
    return JsonRows(values.rows, values.origin.tolist(), values.refused)


def _lines(file: IO[bytes], end: int | None) -> list[bytes]:
    """Some of the lines of a file, none of which goes beyond its end."""
    at = file.tell()
    if end is None:
        return file.readlines(LINES * 128)
    if at >= end:
        return []
    lines = file.readlines(min(LINES * 128, end - at))
    beyond = file.tell() - end
    return [*lines[:-1], lines[-1][:-beyond]] if beyond > 0 else lines


_BY_FOLDER = {b"anabranch": b"folder"}


def by_folder(columns: pa.Schema, *, added: bool) -> pa.Schema:
    """The columns; the last, if it was added, holds the names of folders, whatever is in the files."""
    if not added:
        return columns
    return columns.set(len(columns) - 1, columns.field(len(columns) - 1).with_metadata(_BY_FOLDER))


def _as_told(batch: pa.RecordBatch, columns: pa.Schema, part: FileRange) -> pa.RecordBatch:
    """Rows in the columns and types of the schema, with the name of their folder."""
    found = []
    for field in columns:
        folder = field.name == part.named_in and part.in_folder
        if field.name in batch.schema.names and field.metadata != _BY_FOLDER:
            column = batch.column(field.name)
            if column.type != field.type:
                column = _cast(column, field, part)
            if folder and column.null_count:
                column = column.fill_null(part.replica)
        elif folder:
            codes = pa.repeat(pa.scalar(0, pa.int32()), batch.num_rows)
            column = pa.DictionaryArray.from_arrays(codes, [part.replica])
        else:
            raise _no_column(part, field.name, batch.schema.names)
        found.append(column)
    return pa.RecordBatch.from_arrays(found, names=columns.names)


def _no_column(part: FileRange, name: str, names: Sequence[str]) -> SchemaError:
    error = SchemaError(f"{part.path} has no column {name!r}{did_you_mean(name, names)}")
    error.add_note(f"Its columns are {', '.join(map(repr, names))}.")
    if format_of(part.path) is Format.CSV and (note := separator_note(names)) is not None:
        error.add_note(note)
    return error


def _cast(column: Any, field: pa.Field, part: FileRange) -> Any:
    try:
        return cast(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as reason:
        error = SchemaError(f"{part.path}: column {field.name!r} cannot be {field.type}: {reason}")
        error.add_note("Pass a schema whose types hold the values of every file.")
        raise error from None
