"""JSON texts as rows of an Arrow schema: all at once where they fit, one by one where some do not."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.json

_SPACE = b" \t\r\n"


@dataclass(frozen=True, slots=True)
class JsonRows:
    """Rows, the number of the text that each comes of (None: one of each, in order), and what did not fit."""

    rows: pa.RecordBatch
    origin: list[int] | None
    refused: list[tuple[int, str]]
    """The number of a text and why it is no row."""


def json_rows(texts: Sequence[bytes], columns: pa.Schema) -> JsonRows:
    """One row of each text that is an object with values of the types of the columns; others are refused.

    A field that is no column is left out; a column without a field is null.
    """
    if texts and all(text[:1] == b"{" or text.lstrip(_SPACE)[:1] == b"{" for text in texts):
        # A text that begins an object is one row at least, so as many rows as texts are one of each.
        try:
            rows = _parsed(b"\n".join(map(_on_one_line, texts)), columns)
            if rows.num_rows == len(texts):
                return JsonRows(rows, None, [])
        except (pa.ArrowException, UnicodeDecodeError):
            pass
    return _one_by_one(texts, columns)


def _one_by_one(texts: Sequence[bytes], columns: pa.Schema) -> JsonRows:
    rows, origin, refused = [], [], []
    for n, text in enumerate(texts):
        try:
            if not isinstance(msgspec.json.decode(text), dict):
                raise ValueError("a row is an object, this is none")
            rows.append(_parsed(_on_one_line(text), columns))
            origin.append(n)
        except (ValueError, RecursionError, pa.ArrowException) as reason:
            refused.append((n, str(reason)))
    if not rows:
        return JsonRows(pa.RecordBatch.from_pylist([], columns), [], refused)
    table = pa.Table.from_batches(rows).combine_chunks()
    return JsonRows(table.to_batches()[0], origin, refused)


def _parsed(data: bytes, columns: pa.Schema) -> pa.RecordBatch:
    """Rows of lines. Arrow does not look whether text is UTF-8, so that is looked at here."""
    data.decode()
    options = pa.json.ParseOptions(explicit_schema=columns, unexpected_field_behavior="ignore")
    reading = pa.json.ReadOptions(use_threads=False, block_size=max(len(data) + 1, 1 << 20))
    table = pa.json.read_json(pa.BufferReader(data), read_options=reading, parse_options=options)
    if not table.num_rows:
        return pa.RecordBatch.from_pylist([], columns)
    return table.combine_chunks().to_batches()[0]


def _on_one_line(text: bytes) -> bytes:
    """The same value: inside a string of JSON a line feed is written as an escape."""
    return text.replace(b"\n", b" ") if b"\n" in text else text
