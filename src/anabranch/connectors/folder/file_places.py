"""Which files and lines of a folder refused rows are.

A row that a shard refused is known there by its replica and its number, which stands for a file and a line:
Spark's checkpoint has, for each micro-batch, how many files were read and which was the last, and files are
there until their micro-batch is complete.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from anabranch.connectors.folder.listing import listing
from anabranch.connectors.folder.reading import FILE_ROWS
from anabranch.rows.layout import SINGLE

_NOTHING = {"last": "", "files": 0}


@dataclass(frozen=True)
class FilePlaces:
    """Files and lines of rows that were refused in one micro-batch."""

    source: Path
    checkpoint: Path
    batch: int

    def placed(self, refused: dict[str, Any]) -> dict[str, Any]:
        """A refused row with the file and line it stands for, where they can be told."""
        numbered = re.search(r" row (\d+)$", refused["place"])
        if numbered is None:
            return refused
        file, row = divmod(int(numbered[1]), FILE_ROWS)
        path = self._path(refused["replica"], file)
        if path is None:
            return refused
        place = f"{path}:{row + 1}"
        reason = refused["reason"].replace(f"element {numbered[1]} ", f"element {place} ")
        return refused | {"place": place, "reason": reason}

    def _path(self, replica: str, number: int) -> Path | None:
        key = replica, number
        if key not in self._known:
            self._known[key] = self._found(replica, number)
        return self._known[key]

    def _found(self, replica: str, number: int) -> Path | None:
        for before, after in self._spans():
            name = SINGLE if set(after) == {SINGLE} else replica
            begin, end = before.get(name, _NOTHING), after.get(name, _NOTHING)
            if begin["files"] <= number < end["files"]:
                files = self._files.get(name, {})
                read = [file for file in files if begin["last"] < file <= end["last"]]
                known = len(read) == end["files"] - begin["files"]
                return files[read[number - begin["files"]]] if known else None
        return None

    @cached_property
    def _known(self) -> dict[tuple[str, int], Path | None]:
        return {}

    @cached_property
    def _files(self) -> dict[str, dict[str, Path]]:
        try:
            return listing(self.source).files
        except (ValueError, OSError):
            return {}

    def _spans(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """From where to where each micro-batch read, the last first, as far back as Spark remembers."""
        after = self._offset(self.batch)
        for batch in range(self.batch - 1, -2, -1):
            before = self._offset(batch)
            if after is None or before is None:
                return
            yield before, after
            after = before

    def _offset(self, batch: int) -> dict[str, Any] | None:
        return _offset(self.checkpoint, batch)


def files_of(checkpoint: Path, batch: int) -> int:
    """How many files a micro-batch begins to read; 0 where its source is no folder, or none is new."""
    end, start = _offset(checkpoint, batch), _offset(checkpoint, batch - 1)
    try:
        counts = [sum(place["files"] for place in one.values()) for one in (end or {}, start or {})]
    except (AttributeError, KeyError, TypeError):
        return 0
    return int(counts[0] - counts[1])


def _offset(checkpoint: Path, batch: int) -> dict[str, Any] | None:
    """Where the source was at the end of a micro-batch, if it is the only one of its query."""
    if batch < 0:
        return {}
    try:
        _, _, *lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
        offsets = [msgspec.json.decode(line, type=dict[str, Any]) for line in lines]
    except (OSError, ValueError):
        return None
    rows = [offset for offset in offsets if not _is_of_clock(offset)]
    return rows[0] if len(rows) == 1 else None


def _is_of_clock(offset: dict[str, Any]) -> bool:
    """An offset says where the clock is, and not where a source of rows is."""
    return list(offset) == ["now"] and isinstance(offset["now"], int)
