"""Streams read from files, a batch at a time.

Memory is one batch, whatever the size of the file. A line that is no element goes to the policy as malformed,
with its number and text, and the lines around it are read all the same.
"""

import codecs
import contextlib
import errno
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.connectors.files.csv_header import csv_header
from anabranch.connectors.files.csv_records import record_blocks
from anabranch.connectors.files.csv_rows import CsvRows
from anabranch.connectors.files.formats import STANDARD, Format, checked_format
from anabranch.connectors.files.parquet_times import instants_in, parquet_schema, with_instants
from anabranch.connectors.files.sampled_columns import csv_columns
from anabranch.connectors.files.written_folder import (
    clock_of_written,
    element_of_row,
    format_of_written,
    written_files,
)
from anabranch.errors import AnabranchError
from anabranch.model import json_lines, notation
from anabranch.model.arrow import batches as arrow_batches
from anabranch.model.batch import Batch
from anabranch.model.clock import Clock, one_clock
from anabranch.model.clock_columns import clock_of_elements
from anabranch.model.dialects import DIALECTS
from anabranch.model.elements import Element, Tagged
from anabranch.model.schema import SchemaError
from anabranch.model.time import BEGINNING
from anabranch.model.validity import Policy, Raise, Rule, Violation

ROWS = 65_536
"""Elements per batch."""


class UnreadableError(AnabranchError, ValueError):
    """A file is not what its format says."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file, a folder that a sink wrote, or standard input, and what it is written in."""

    path: str
    format: Format
    dialect: str | None = None

    @classmethod
    def named(cls, path: str, format: str | None = None, dialect: str | None = None) -> "Source":  # noqa: A002
        """A source whose format is given or told by its name, or by the files of the folder that it is."""
        if path != STANDARD and Path(path).is_dir():
            return cls(path, format_of_written(path, format, dialect))
        told = format is not None or dialect is not None
        if path != STANDARD and not told and not Path(path).exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return cls(path, checked_format(path, format, dialect), dialect)

    def batches(
        self, *, policy: Policy | None = None, progress: Callable[[float], object] | None = None
    ) -> Iterator[Batch]:
        """The stream; ``progress`` is told from time to time how much has been read, from 0 to 1."""
        try:
            if self.path != STANDARD and Path(self.path).is_dir():
                yield from self._from_folder(policy or Raise(), progress)
                return
            match self.format:
                case Format.PARQUET:
                    yield from _ahead(_parquet(self.path, progress))
                case Format.ARROW:
                    yield from _ahead(_arrow(self.path, progress))
                case Format.CSV:
                    yield from _csv(self.path, policy or Raise(), progress)
                case Format.JSON_LINES | Format.NOTATION:
                    yield from _of_one_kind(self._from_lines(policy or Raise(), progress))
        except pa.ArrowException as reason:
            raise self._unreadable(reason) from None
        except SchemaError as error:
            error.add_note(f"In {self.path}.")
            raise

    def clock(self) -> Clock:
        """What its ticks are to people; numbers where nothing says it."""
        return self.known_clock() or Clock.TICKS

    def known_clock(self) -> Clock | None:
        """What its ticks are, as its columns or the first times of its lines say."""
        try:
            return self._known_clock()
        except pa.ArrowException as reason:
            raise self._unreadable(reason) from None

    def _unreadable(self, reason: Exception) -> "UnreadableError":
        return UnreadableError(f"{self.path} cannot be read as {self.format.value}: {reason}")

    def _known_clock(self) -> Clock | None:
        if self.path != STANDARD and Path(self.path).is_dir():
            return clock_of_written(self.path)
        match self.format:
            case Format.PARQUET if self.path != STANDARD:
                return clock_of_elements(parquet_schema(self.path))
            case Format.ARROW if self.path != STANDARD:
                return _clock_of_arrow(self.path)
            case Format.CSV if self.path != STANDARD:
                return clock_of_elements(_columns_of_elements(self.path))
            case Format.JSON_LINES | Format.NOTATION if self.dialect is None:
                read = self._line_reader()
                for line in _first_lines(self.path):
                    with contextlib.suppress(ValueError, TypeError, RecursionError):
                        read(line)
                    if read.clock is not None:
                        return read.clock
            case _:
                return Clock.TICKS
        return None

    def _line_reader(self) -> "_Lines":
        return _Lines(json_lines.read if self.format is Format.JSON_LINES else _notation_line)

    def _from_folder(self, policy: Policy, progress: Callable[[float], object] | None) -> Iterator[Batch]:
        """What a sink wrote, file by file: micro-batch by micro-batch, each with its stable last."""
        files = written_files(self.path)
        for number, file in enumerate(files, 1):
            try:
                if self.format is Format.PARQUET:
                    yield from arrow_batches(pq.read_table(file))
                elif self.format is Format.ARROW:
                    yield from _arrow(str(file), None)
                else:
                    yield from _in_batches(_parsed(str(file), element_of_row, policy, None))
            except pa.ArrowException as reason:
                raise UnreadableError(f"{file} cannot be read as {self.format.value}: {reason}") from None
            if progress:
                progress(number / len(files))

    def _from_lines(self, policy: Policy, progress: Callable[[float], object] | None) -> Iterator[Batch]:
        if self.dialect is not None:
            dialect: Any = DIALECTS[self.dialect]
            items = _parsed(self.path, lambda line: dialect.from_record(_json_object(line)), policy, progress)
            return _in_batches(dialect.read(items))
        return _in_batches(_parsed(self.path, self._line_reader(), policy, progress))


def _json_object(line: bytes) -> Any:
    value = msgspec.json.decode(line)
    json_lines.check_depth(value, line)
    return value


def _notation_line(line: bytes) -> tuple[Element | Tagged | None, Clock | None]:
    return notation.read_line(line.decode())


class _Lines:
    """State: the clock of the lines read so far, which is that of all."""

    def __init__(self, read: Callable[[bytes], tuple[Any, Clock | None]]) -> None:
        self.read = read
        self.clock: Clock | None = None

    def __call__(self, line: bytes) -> Any:
        item, clock = self.read(line)
        if clock is not None:
            self.clock = one_clock(self.clock, clock)
        return item


def _first_lines(path: str) -> list[bytes]:
    """Lines at the beginning of a file; of standard input those that have come, which stay to be read."""
    if path == STANDARD:
        peek = getattr(sys.stdin.buffer, "peek", None)
        return [] if peek is None else peek(1).splitlines()
    with Path(path).open("rb") as file:
        return file.readlines(1 << 16)


def _clock_of_arrow(path: str) -> Clock:
    with pa.memory_map(path) as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        return clock_of_elements((pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)).schema)


def _of_one_kind(batches: Iterator[Batch]) -> Iterator[Batch]:
    """The same batches, as long as either every element names its input or none does."""
    tagged: bool | None = None
    for batch in batches:
        if len(batch):
            if tagged is not None and tagged != (batch.input is not None):
                raise SchemaError("either every element of a stream names its input or none does")
            tagged = batch.input is not None
        yield batch


def _in_batches(elements: Iterable[Element | Tagged]) -> Iterator[Batch]:
    rows: list[Element | Tagged] = []
    for element in elements:
        rows.append(element)
        if len(rows) == ROWS:
            yield Batch.of(rows)
            rows = []
    yield Batch.of(rows)


def _parsed(
    path: str,
    parse: Callable[[bytes], Any],
    policy: Policy,
    progress: Callable[[float], object] | None,
) -> Iterator[Any]:
    with _opened(path) as (file, size):
        done = 0
        for number, text in enumerate(file, 1):
            line = text.removeprefix(codecs.BOM_UTF8) if number == 1 else text
            done += len(line)
            if progress and size and number % 4096 == 0:
                progress(done / size)
            if not line.strip():
                continue
            try:
                item = parse(line)
            except (ValueError, TypeError, RecursionError) as reason:
                raw = line.decode(errors="replace").rstrip("\n")
                policy(Violation(Rule.MALFORMED, number, raw, BEGINNING, detail=f"{reason}: {raw[:200]}"))
                continue
            if item is not None:
                yield item


@contextmanager
def _opened(path: str) -> Iterator[tuple[IO[bytes], int]]:
    if path == STANDARD:
        yield sys.stdin.buffer, 0
        return
    with Path(path).open("rb") as file:
        yield file, Path(path).stat().st_size


def _ahead(batches: Iterator[Batch]) -> Iterator[Batch]:
    """The same batches, read by one thread and hashed by another while the caller works on those before."""

    def identified(step: Future[Batch | None]) -> Batch | None:
        batch = step.result()
        if batch is not None:
            _ = batch.identities
        return batch

    with ThreadPoolExecutor(1) as reader, ThreadPoolExecutor(1) as hasher:

        def begin() -> Future[Batch | None]:
            return hasher.submit(identified, reader.submit(next, batches, None))

        steps = deque([begin(), begin()])
        while (batch := steps.popleft().result()) is not None:
            steps.append(begin())
            yield batch


def _parquet(path: str, progress: Callable[[float], object] | None) -> Iterator[Batch]:
    place = pa.BufferReader(sys.stdin.buffer.read()) if path == STANDARD else path
    names = [name for name in ("kind", "input") if name in pq.read_schema(place).names]
    file = pq.ParquetFile(place, read_dictionary=names)
    known = instants_in(file)
    if not file.metadata.num_rows:
        yield from arrow_batches(file.schema_arrow.empty_table())
    # One iteration over all row groups would hold the bytes of every group it has passed.
    parts = (
        with_instants(part, known)
        for group in range(file.num_row_groups)
        for part in file.iter_batches(_even_part(file.metadata.row_group(group).num_rows), row_groups=[group])
    )
    yield from _counted(parts, file.metadata.num_rows, progress)


def _even_part(rows: int) -> int:
    """The size of parts of at most ROWS rows, none of which is a small remainder.

    A reader that is one batch ahead gains nothing behind a batch that is done at once.
    """
    parts = -(-rows // ROWS)
    return -(-rows // parts) if parts else ROWS


def _arrow(path: str, progress: Callable[[float], object] | None) -> Iterator[Batch]:
    standard = path == STANDARD
    with pa.BufferReader(sys.stdin.buffer.read()) if standard else pa.memory_map(path) as file:
        if file.read(6) == b"ARROW1":
            reader = pa.ipc.open_file(file)
            parts = (reader.get_batch(i) for i in range(reader.num_record_batches))
            yield from _counted(parts, 0, progress)
        else:
            file.seek(0)
            yield from _counted(pa.ipc.open_stream(file), 0, progress)


def _csv(path: str, policy: Policy, progress: Callable[[float], object] | None) -> Iterator[Batch]:
    columns = _columns_of_elements(path)
    with Path(path).open("rb") as file:
        header, size = csv_header(file, path), Path(path).stat().st_size
        if header is None:
            return
        rows, done = CsvRows(header.names, columns, path), header.end
        file.seek(header.end)
        for block in record_blocks(file, header.lines):
            texts, lines = header.rows_in(block)
            found = rows.read(texts)
            for n, reason in found.refused:
                raw = texts[n].decode(errors="replace").rstrip("\r")
                detail = f"{reason}: {raw[:200]}"
                policy(Violation(Rule.MALFORMED, lines[n], raw, BEGINNING, detail=detail))
            yield from arrow_batches(found.rows)
            done += block.size
            if progress:
                progress(done / size)


def _columns_of_elements(path: str) -> pa.Schema:
    """The columns of a CSV file of elements: times of which the sample has none are as starts are."""
    if path == STANDARD:
        error = UnreadableError("CSV is read from a file, and - is standard input")
        error.add_note("Write it to a file first: its types are those of its first rows.")
        raise error
    columns = csv_columns(path)
    start = columns.field("start").type if "start" in columns.names else pa.string()
    times = ("start", "end", "old_end")
    types = [start if field.name in times else pa.string() for field in columns]
    pairs = zip(columns, types, strict=True)
    return pa.schema(
        [field.with_type(open_type) if pa.types.is_null(field.type) else field for field, open_type in pairs]
    )


def _counted(
    parts: Iterable[pa.RecordBatch], rows: int, progress: Callable[[float], object] | None
) -> Iterator[Batch]:
    done = 0
    for part in parts:
        yield from arrow_batches(part)
        done += part.num_rows
        if progress and rows:
            progress(done / rows)
