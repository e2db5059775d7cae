"""The first record of a CSV file: the names of its columns."""

import codecs
import csv
import io
from dataclasses import dataclass
from typing import IO

from anabranch.connectors.files.csv_records import Records, quoting_error, record_blocks
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
    before = 0
    for block in record_blocks(file, 0):
        for text, line in zip(block.texts, block.lines, strict=True):
            before += len(text) + 1
            bare = text.removeprefix(codecs.BOM_UTF8) if line == 1 else text
            if bare.strip():
                return CsvHeader(_names(bare, path), before, line + bare.count(b"\n"))
    return None


def _names(text: bytes, path: str) -> tuple[str, ...]:
    if (wrong := quoting_error(text)) is not None:
        raise SchemaError(f"{path}: {wrong}: the header {text[:200]!r}")
    try:
        return tuple(cells_of(text))
    except UnicodeDecodeError:
        error = SchemaError(f"{path}: text is UTF-8, and the header is not: {text[:60]!r}")
        error.add_note("Convert the file, for example: iconv -f UTF-16 -t UTF-8 IN > OUT.")
        raise error from None


def cells_of(text: bytes) -> list[str]:
    """The texts of the cells of a record."""
    return next(csv.reader(io.StringIO(text.decode().rstrip("\r\n"), newline="")), [""])
