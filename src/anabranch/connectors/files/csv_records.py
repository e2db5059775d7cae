"""The records of a CSV file: which bytes are one row, and at which line each begins.

A cell in quotes holds commas, line feeds, and quotes that are doubled. A quote in a cell that does not begin
with one is a character as any other: `5" pipe`.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from anabranch.model.schema import SchemaError

BLOCK = 2 << 20
"""Bytes that are read at a time."""
LONGEST = 16 << 20
"""Bytes of one record, at most: a quote that is not closed makes all that follows one cell."""
_FEED, _QUOTE = 0x0A, 0x22
_CELL = rb'(?:"(?:[^"]++|"")*+"[^,\n]*+|[^,\n"][^,\n]*+)?+'
_RECORD = re.compile(rb"%b(?:,%b)*+\n" % (_CELL, _CELL))
_STRICT_CELL = rb'(?:"(?:[^"]++|"")*+"|[^,\n"][^,\n]*+)?+'
_STRICT = re.compile(rb"%b(?:,%b)*+\r?" % (_STRICT_CELL, _STRICT_CELL))


@dataclass(frozen=True, slots=True)
class Records:
    """Some records of a file, and the line at which each begins, counted from 1."""

    texts: list[bytes]
    lines: list[int]
    size: int
    """Bytes of all, with their line ends."""


def pass_mark(file: IO[bytes]) -> int:
    """Go to the first byte after the byte order mark of a file, and which that is."""
    marked = file.read(len(BOM_UTF8)) == BOM_UTF8
    return file.seek(len(BOM_UTF8) if marked else 0)


def record_blocks(file: IO[bytes], lines: int, end: int | None = None) -> Iterator[Records]:
    """The records from the place of a file that is open, before which there are so many lines.

    The last one may be without a line feed.
    """
    rest = b""
    while block := file.read(BLOCK if end is None else max(min(BLOCK, end - file.tell()), 0)):
        data = rest + block
        found = _cut(data, _ends(data), lines)
        rest = data[found.size :]
        if len(rest) > LONGEST:
            at = lines + data.count(b"\n", 0, found.size) + 1
            error = SchemaError(f"a row is at most {LONGEST >> 20} MiB, and that of line {at} is longer")
            error.add_note("A quote that opens a cell and is not closed makes all that follows one cell.")
            raise error
        lines += data.count(b"\n", 0, found.size)
        if found.texts:
            yield found
    if rest:
        yield Records([rest], [lines + 1], len(rest))


def end_of_records(path: Path) -> int:
    """How many bytes of a file are records with their line feeds."""
    rest = b""
    with path.open("rb") as file:
        size = pass_mark(file)
        while len(rest) <= LONGEST and (block := file.read(BLOCK)):
            data = rest + block
            ends = _ends(data)
            whole = int(ends[-1]) if len(ends) else 0
            size, rest = size + whole, data[whole:]
    return size


def quoting_error(text: bytes) -> str | None:
    """What is wrong with the quotes of a record; None: nothing."""
    if b'"' not in text or _STRICT.fullmatch(text):
        return None
    if _RECORD.fullmatch(text.rstrip(b"\r\n") + b"\n"):
        return "after the closing quote of a cell comes a comma or the end of the line, here comes more"
    return "a quote that opens a cell is closed, and this row has one that is not"


def _cut(data: bytes, ends: NDArray[np.int64], lines: int) -> Records:
    """Data up to its ends as records, without their line feeds."""
    if not len(ends):
        return Records([], [], 0)
    size = int(ends[-1])
    if data.count(b"\n", 0, size) == len(ends):
        texts = data[: size - 1].split(b"\n")
        return Records(texts, list(range(lines + 1, lines + 1 + len(texts))), size)
    begins = [0, *ends[:-1].tolist()]
    texts = [data[begin : end - 1] for begin, end in zip(begins, ends.tolist(), strict=True)]
    feeds = _places(data, _FEED)
    return Records(texts, (lines + 1 + np.searchsorted(feeds, begins)).tolist(), size)


def _ends(data: bytes) -> NDArray[np.int64]:
    """Where records end: after each line feed that is in no quoted cell."""
    feeds = _places(data, _FEED)
    if b'"' not in data:
        return feeds + 1
    if not is_regular(data):
        return _ends_one_by_one(data)
    quotes = _places(data, _QUOTE)
    return feeds[np.searchsorted(quotes, feeds) % 2 == 0] + 1


def _places(data: bytes, byte: int) -> NDArray[np.int64]:
    return np.flatnonzero(np.frombuffer(data, np.uint8) == byte)


def is_regular(data: bytes) -> bool:
    """Every quote of some records opens a cell, closes one, or is one of two in a cell."""
    quotes = _places(data, _QUOTE)
    padded = np.frombuffer(b"\n" + data + b"\n", np.uint8)
    opening, closing = quotes[::2], quotes[1::2]
    return bool(
        np.isin(padded[opening], np.frombuffer(b',\n"', np.uint8)).all()
        and np.isin(padded[closing + 2], np.frombuffer(b',\r\n"', np.uint8)).all()
    )


def _ends_one_by_one(data: bytes) -> NDArray[np.int64]:
    ends, at = [], 0
    while found := _RECORD.match(data, at):
        at = found.end()
        ends.append(at)
    return np.array(ends, np.int64)
