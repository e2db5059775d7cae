"""Files that are still being written: how far one can be read now, and whether it has only grown since.

Lines may be appended to the file that is the last of its replica: it is read up to the end of a line, and
what comes after it by a later micro-batch. A line that is not complete is no row; it is left until it is,
until a later file says that it never will be, or until nothing was written for `YOUNG` seconds. A line of
CSV is complete when its line feed is there: a part of it may look like a row. A Parquet or
Arrow file without its end is left for as long.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from anabranch.connectors.files.csv_records import end_of_records
from anabranch.connectors.files.formats import Format, format_of
from anabranch.connectors.folder.reading import end_mark

YOUNG = 10.0
"""Seconds since its last change for which a file may be a part of what it will be."""
_BLOCK = 1 << 16
_ENDS = {b"PAR1": b"PAR1", b"ARRO": b"ARROW1"}
"""How a file ends that begins so."""


def is_young(file: Path) -> bool:
    """A file was written to a moment ago."""
    return time.time() - file.stat().st_mtime < YOUNG


def is_unfinished(file: Path) -> bool:
    """A file has not the end that its format has, and may yet get it."""
    if format_of(file.name).is_text or not is_young(file):
        return False
    with file.open("rb") as data:
        begins = data.read(4)
        wanted = _ENDS.get(begins)
        if wanted is None:
            return len(begins) < 4
        size = data.seek(0, 2)
        data.seek(max(size - len(wanted), 4))
        return data.read() != wanted


def readable(file: Path, *, is_last: bool) -> int:
    """How many bytes of a file of lines are whole lines; all, where others follow it or it is old."""
    size = file.stat().st_size
    if format_of(file.name) is Format.CSV:
        return end_of_records(file) if is_last and is_young(file) else size
    rest = _last_line(file, size)
    if not rest.strip() or not is_last or not is_young(file) or _is_whole(rest):
        return size
    return size - len(rest)


def _last_line(file: Path, size: int) -> bytes:
    """What is after the last line feed."""
    rest = b""
    with file.open("rb") as data:
        for begin in range(size - _BLOCK, -_BLOCK, -_BLOCK):
            data.seek(max(begin, 0))
            block, feed, after = (data.read(min(_BLOCK, begin + _BLOCK)) + rest).rpartition(b"\n")
            if feed:
                return after
            rest = block + after
    return rest


def _is_whole(line: bytes) -> bool:
    try:
        msgspec.json.decode(line)
    except msgspec.DecodeError:
        return False
    return True


def position(file: Path, *, is_last: bool, most: int | None = None) -> dict[str, int]:
    """Up to where a file of lines is read, no further than ``most``; nothing for other files."""
    if not format_of(file.name).is_text:
        return {}
    end = readable(file, is_last=is_last)
    end = end if most is None else min(end, most)
    return {"size": end, "ends": end_mark(file, end)}


def continues(place: Mapping[str, Any], file: Path | None, *, is_last: bool) -> bool:
    """Lines were appended to the file that was read last; raises where it is another file now."""
    if file is None or "size" not in place or file.stat().st_size <= place["size"]:
        return False
    check_kept(file, place["size"], place["ends"])
    return readable(file, is_last=is_last) > place["size"]


def check_kept(file: Path, end: int, ends: int) -> None:
    """Raise where what was read of a file, up to ``end``, has changed."""
    if end_mark(file, end) != ends:
        error = ValueError(f"lines are appended to {file} or it stays, and what was read of it has changed")
        error.add_note(f"Put it back as it was, its first {end} bytes, and append to them; or give")
        error.add_note("what is new a file of its own, with a later name.")
        raise error


def lines_before(file: Path, end: int) -> int:
    """How many line feeds are before a place."""
    count = 0
    with file.open("rb") as data:
        while end > 0 and (block := data.read(min(end, 1 << 20))):
            count += block.count(b"\n")
            end -= len(block)
    return count
