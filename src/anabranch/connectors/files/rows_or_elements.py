"""Whether a file holds plain rows or the elements of a recorded stream, by its columns or its first line."""

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.connectors.files.csv_header import header_names
from anabranch.connectors.files.formats import STANDARD, Format, checked_format
from anabranch.model.batch import KINDS

_LOOKED_AT = 1 << 16
"""Bytes of lines in which the first object is looked for."""


def holds_rows(path: str, format: str | None = None) -> bool | None:  # noqa: A002
    """Rows, or elements (as standard input and the folder of a run are taken to); None: unknown."""
    if path == STANDARD or Path(path).is_dir():
        return False
    match checked_format(path, format, None):
        case Format.PARQUET | Format.ARROW as form:
            try:
                return _are_rows(pq.read_schema(path).names if form is Format.PARQUET else _arrow_names(path))
            except pa.ArrowException:
                return None
        case Format.CSV:
            names = header_names(path)
            return None if names is None else _are_rows(names)
        case Format.JSON_LINES:
            return _lines_are_rows(path)
        case _:
            return False


def _are_rows(names: list[str] | tuple[str, ...]) -> bool:
    return not {"kind", "start"} <= {*names}


def _arrow_names(path: str) -> list[str]:
    with pa.memory_map(path) as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        found: list[str] = (pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)).schema.names
        return found


def _lines_are_rows(path: str) -> bool | None:
    with Path(path).open("rb") as file:
        lines = file.readlines(_LOOKED_AT)
    for line in lines:
        try:
            first = msgspec.json.decode(line.removeprefix(b"\xef\xbb\xbf"))
        except (ValueError, RecursionError):
            continue
        if not isinstance(first, dict) or "kind" not in first:
            return isinstance(first, dict)
        return False if first["kind"] in KINDS else None
    return None
