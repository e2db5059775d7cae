"""Which files and lines of a folder refused rows are.

A row that a shard refused is known there by its replica and its number, which stands for a file and a line:
Spark's checkpoint has, for each micro-batch and source, how many files were read and which was the last, and
files are there until their micro-batch is complete. Where a query has several sources, the offset of a folder
says which edge of the plan it is read for, and so does the place of a row, unless the replica is that edge.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from anabranch.connectors.folder.listing import listing
from anabranch.connectors.folder.reading import FILE_ROWS
from anabranch.rows.layout import SINGLE
from anabranch.rows.refusal import ONLY

EDGE = "edge"
"""Where the offset of a replica of a folder says which edge of the plan it is read for."""
_NOT_BEGUN = "-"
_NOTHING = {"last": "", "files": 0}


@dataclass(frozen=True)
class FilePlaces:
    """Files and lines of rows that were refused in one micro-batch."""

    numbered: Mapping[str, str]
    """The folders whose files and lines number rows, by the names of their edges, or of `ONLY` a source."""
    checkpoint: Path
    batch: int

    def placed(self, refused: dict[str, Any]) -> dict[str, Any]:
        """A refused row with the file and line it stands for, where they can be told."""
        numbered = re.search(r" row (\d+)$", refused["place"])
        if numbered is None:
            return refused
        file, row = divmod(int(numbered[1]), FILE_ROWS)
        edge = self._edge(refused["place"], refused["replica"], numbered[0])
        path = None if edge is None else self._path(edge, refused["replica"], file)
        if path is None:
            return refused
        place = f"{path}:{row + 1}"
        reason = refused["reason"].replace(f"element {numbered[1]} ", f"element {place} ")
        return refused | {"place": place, "reason": reason}

    def _edge(self, place: str, replica: str, row: str) -> str | None:
        """The edge by which a row came, where its place is of a folder."""
        edges = {f"{name}: {replica}{row}": name for name in self.numbered}
        own = ONLY if ONLY in self.numbered else replica if replica in self.numbered else None
        return edges.get(place, own if place == f"{replica}{row}" else None)

    def _path(self, edge: str, replica: str, number: int) -> Path | None:
        key = edge, replica, number
        if key not in self._known:
            self._known[key] = self._found(*key)
        return self._known[key]

    def _found(self, edge: str, replica: str, number: int) -> Path | None:
        for before, after in self._spans(edge):
            name = SINGLE if set(after) == {SINGLE} else replica
            begin, end = before.get(name, _NOTHING), after.get(name, _NOTHING)
            if begin["files"] <= number < end["files"]:
                files = self._files(edge).get(name, {})
                read = [file for file in files if begin["last"] < file <= end["last"]]
                known = len(read) == end["files"] - begin["files"]
                return files[read[number - begin["files"]]] if known else None
        return None

    @cached_property
    def _known(self) -> dict[tuple[str, str, int], Path | None]:
        return {}

    @cached_property
    def _listed(self) -> dict[str, dict[str, dict[str, Path]]]:
        return {}

    def _files(self, edge: str) -> dict[str, dict[str, Path]]:
        if edge not in self._listed:
            try:
                self._listed[edge] = listing(Path(self.numbered[edge])).files
            except (ValueError, OSError):
                self._listed[edge] = {}
        return self._listed[edge]

    def _spans(self, edge: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """From where to where each micro-batch read, the last first, as far back as Spark remembers."""
        after = self._offset(edge, self.batch)
        for batch in range(self.batch - 1, -2, -1):
            before = self._offset(edge, batch)
            if after is None or before is None:
                return
            yield before, after
            after = before

    def _offset(self, edge: str, batch: int) -> dict[str, Any] | None:
        if edge == ONLY:
            return _offset(self.checkpoint, batch)
        offsets = _offsets(self.checkpoint, batch)
        if offsets is None:
            return None
        places = (place for offset in offsets for place in offset.items())
        return {name: one for name, one in places if isinstance(one, dict) and one.get(EDGE) == edge}


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
    rows = [offset for offset in _offsets(checkpoint, batch) or () if not _is_of_clock(offset)]
    return rows[0] if len(rows) == 1 else None


def _offsets(checkpoint: Path, batch: int) -> list[dict[str, Any]] | None:
    """Where the sources were at the end of a micro-batch; those that had not begun are left out."""
    if batch < 0:
        return []
    try:
        _, _, *lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
        return [msgspec.json.decode(line, type=dict[str, Any]) for line in lines if line != _NOT_BEGUN]
    except (OSError, ValueError):
        return None


def _is_of_clock(offset: dict[str, Any]) -> bool:
    """An offset says where the clock is, and not where a source of rows is."""
    return list(offset) == ["now"] and isinstance(offset["now"], int)
