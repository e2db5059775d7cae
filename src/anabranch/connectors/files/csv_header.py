"""The first record of a CSV file: the names of its columns."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from anabranch.connectors.files.csv_records import Records, pass_mark, quoting_error, record_blocks
from anabranch.model.schema import SchemaError


@dataclass(frozen=True, slots=True)
class CsvHeader:
    """The names of columns, and where the rows begin."""

    names: tuple[str, ...]
    end: int
    """The first byte after it."""
    lines: int
    """The lines before that."""

    def rows_in(self, records: Records) -> tuple[list[bytes], list[int]]:
        """The records that are rows, and their lines; empty lines are rows only of one column."""
        texts, lines = records.texts, records.lines
        if len(self.names) == 1 or (b"" not in texts and all(map(bytes.strip, texts))):
            return texts, lines
        kept = [n for n, text in enumerate(texts) if text.strip()]
        return [texts[n] for n in kept], [lines[n] for n in kept]


def csv_header(file: IO[bytes], path: str) -> CsvHeader | None:
    """The header of a file that is open at its beginning; None: there is nothing in it."""
    before = pass_mark(file)
    for block in record_blocks(file, 0):
        for text, line in zip(block.texts, block.lines, strict=True):
            before += len(text) + 1
            if text.strip():
                return CsvHeader(_names(text, path), before, line + text.count(b"\n"))
    return None


def header_names(path: str) -> tuple[str, ...] | None:
    """The names in the header of a file; None: there is nothing in it."""
    with Path(path).open("rb") as file:
        header = csv_header(file, path)
    return None if header is None else header.names


def _names(text: bytes, path: str) -> tuple[str, ...]:
    if (wrong := quoting_error(text)) is not None:
        raise SchemaError(f"{path}: {wrong}: the header {text[:200]!r}")
    try:
        first, *others = [*_rows_of(text)] or [[""]]
    except UnicodeDecodeError:
        error = SchemaError(f"{path}: text is UTF-8, and the header is not: {text[:60]!r}")
        error.add_note("Convert the file, for example: iconv -f UTF-16 -t UTF-8 IN > OUT.")
        raise error from None
    if others:
        wrong_end = SchemaError(f"{path}: lines end with a line feed, and these with a carriage return")
        wrong_end.add_note("All would be the header. Convert it, for example: tr '\\r' '\\n' < IN > OUT.")
        raise wrong_end
    return tuple(first)


def cells_of(text: bytes) -> list[str]:
    """The texts of the cells of a record."""
    return next(_rows_of(text), [""])


def _rows_of(text: bytes) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(text.decode().rstrip("\r\n"), newline=""))


def separator_note(names: Sequence[str]) -> str | None:
    """What to do about a header that is one name with other separators than commas in it; None: it is not."""
    if len(names) != 1 or not re.search(r"[;\t|]", names[0]):
        return None
    return "Cells of CSV have commas between them; convert a file with other separators."
