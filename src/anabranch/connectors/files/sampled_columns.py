"""The columns and types of files of text, as their first rows have them.

Of the texts of a column all must be of one form: whole numbers, numbers, true or false, dates, times with a
zone, times without one. Otherwise it is text: numbers with zeros before them too, as they are names. A column
in which the sample has nothing has the type null. Texts of JSON are never numbers.
"""

import os
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from anabranch.connectors.files.csv_header import csv_header, separator_note
from anabranch.connectors.files.csv_records import record_blocks
from anabranch.connectors.files.csv_rows import CsvRows
from anabranch.connectors.files.time_texts import ticks_of
from anabranch.model.schema import SchemaError

SAMPLE = 1_000
"""Rows that are looked at."""
_WHOLE = re.compile(r"-?(0|[1-9]\d*)", re.ASCII)
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d*)?([eE][+-]?\d+)?|NaN|nan", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_LOCAL = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?", re.ASCII)
_MOMENT = re.compile(_LOCAL.pattern + r"(Z|[+-]\d{2}(:?\d{2})?)", re.ASCII)
_TIME = re.compile(rf"{_LOCAL.pattern}|{_MOMENT.pattern}", re.ASCII)
_TIMES = (
    (_DATE, pa.date32()),
    (_LOCAL, pa.timestamp("us")),
    (_MOMENT, pa.timestamp("us", "UTC")),
)


def csv_columns(path: str, zone: str | None = None) -> pa.Schema:
    """The columns of a CSV file; none where it is empty. Times without a zone are in ``zone``, or local."""
    with Path(path).open("rb") as file:
        header = csv_header(file, path)
        if header is None:
            return pa.schema([])
        if "" in header.names:
            error = SchemaError(f"{path}: column {header.names.index('') + 1} of the header has no name")
            error.add_note(f"Its columns are {', '.join(map(repr, header.names))}.")
            error.add_note("Name it, or give a schema: the columns that it has not are left out.")
            raise error
        if (note := separator_note(header.names)) is not None:
            error = SchemaError(f"{path}: the header is one column, {header.names[0]!r}")
            error.add_note(note)
            error.add_note("A column that is called so is named in a schema.")
            raise error
        rows = CsvRows(header.names, pa.schema([(name, pa.string()) for name in header.names]), path)
        file.seek(header.end)
        texts: list[bytes] = []
        lines: list[int] = []
        for block in record_blocks(file, header.lines):
            some = header.rows_in(block)
            texts, lines = texts + some[0], lines + some[1]
            if len(texts) > SAMPLE:
                break
        else:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n" and len(texts) > 1:
                texts.pop()  # it may be torn, and then says nothing of the forms of values
    found = rows.read(texts[:SAMPLE])
    if len(found.refused) > 1 and not found.rows.num_rows:
        first, reason = found.refused[0]
        error = SchemaError(
            f"{path}:{lines[first]}: {reason}; none of the first {len(found.refused):,} rows fits"
        )
        error.add_note(
            "Without a row that fits, types of columns are not known. Mend the header or the rows."
        )
        raise error
    texts_of = {name: found.rows.column(name).to_pylist() for name in header.names}
    return pa.schema([(name, _type_of(some, zone)) for name, some in texts_of.items()])


def with_text(columns: pa.Schema) -> pa.Schema:
    """The same with text where the sample has nothing."""
    types = [pa.string() if pa.types.is_null(dtype) else dtype for dtype in columns.types]
    return pa.schema(list(zip(columns.names, types, strict=True)))


def in_words(paths: Iterable[str], columns: pa.Schema) -> str:
    """The columns of files of text, as a sentence for those whose files they are."""
    types = ", ".join(f"{field.name} {field.type}" for field in columns)
    return f"columns of {', '.join(paths)}, by their first {SAMPLE:,} rows: {types}"


def json_columns(path: str, zone: str | None = None) -> pa.Schema:
    """The columns of a file of JSON lines, likewise; none where no line is an object."""
    values: dict[str, list[Any]] = {}
    with Path(path).open("rb") as file:
        for text in islice((line for line in file if line.strip()), SAMPLE):
            try:
                row = msgspec.json.decode(text.removeprefix(b"\xef\xbb\xbf"), type=dict[str, Any])
            except (ValueError, RecursionError):
                continue
            for name, value in row.items():
                values.setdefault(name, []).append(value)
    return pa.schema([(name, _type_of_values(name, some, path, zone)) for name, some in values.items()])


def _type_of(texts: Iterable[str | None], zone: str | None) -> pa.DataType:
    """The type that all of some texts are of."""
    some = list(dict.fromkeys(text for text in texts if text))
    if not some:
        return pa.null()
    if _all(_WHOLE, some):
        return _whole_type(list(map(int, some)))
    if _all(_NUMBER, some):
        return pa.float64()
    if {text.lower() for text in some} <= {"true", "false"}:
        return pa.bool_()
    return _time_type(some, zone)


def _time_type(texts: Sequence[str], zone: str | None) -> pa.DataType:
    for form, dtype in _TIMES if zone is None else ((_DATE, pa.date32()), (_TIME, pa.timestamp("us", zone))):
        if _all(form, texts):
            try:
                for text in texts:
                    ticks_of(text, dtype if pa.types.is_timestamp(dtype) else pa.timestamp("us"))
            except ValueError:
                return pa.string()
            return dtype
    return pa.string()


def _whole_type(numbers: Sequence[int]) -> pa.DataType:
    if min(numbers) >= -(1 << 63) and max(numbers) < 1 << 63:
        return pa.int64()
    return pa.uint64() if min(numbers) >= 0 and max(numbers) < 1 << 64 else pa.string()


def _all(form: re.Pattern[str], texts: Iterable[str]) -> bool:
    return all(map(form.fullmatch, texts))


def _type_of_values(name: str, values: Sequence[Any], path: str, zone: str | None) -> pa.DataType:
    some = [value for value in values if value is not None]
    if some and all(isinstance(value, str) for value in some):
        return _time_type(some, zone)
    if some and all(isinstance(value, int) and not isinstance(value, bool) for value in some):
        return _whole_type(some)
    try:
        return pa.array(some).type
    except (pa.ArrowException, OverflowError):
        error = SchemaError(f"{path}: the first rows have values of several types in column {name!r}")
        error.add_note("Give a schema; rows with other values are then refused one by one.")
        raise error from None
