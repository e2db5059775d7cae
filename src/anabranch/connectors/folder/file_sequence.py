"""The files of a replica in the order of their names, and how far they have been read.

The last may grow while the run lasts and between two runs, where it has lines. A place is a range of a file:
read again from its beginning to its end it gives the same rows in the same pieces, whatever was appended
since. What is not at such a place is an error that names the file.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from anabranch.connectors.files.debezium import Debezium
from anabranch.connectors.files.formats import format_of
from anabranch.connectors.folder.growing import check_kept, is_unfinished, lines_before, readable
from anabranch.connectors.folder.reading import end_mark, last_changed
from anabranch.connectors.folder.row_feeds import file_range, range_intakes, rows_in
from anabranch.engines.embedded.feeds import Extent, Feed, Mark, Positioned, Reading
from anabranch.engines.embedded.intake import Intake
from anabranch.plan.source import Source

PAUSE = 0.5
"""Seconds between looks at files that are followed."""


class FilePlace(msgspec.Struct, frozen=True):
    """A range of bytes of a file, of lines the part that could be read; all before it has been read."""

    file: str = ""
    number: int = -1
    """Of the file among those that have been read."""
    begin: int = 0
    end: int = 0
    ends: int = 0
    """What `end_mark` knows the end by."""
    begins: int = 0
    """What it knows the beginning by."""
    newest: int = 0
    """When a file that has been read changed last, in microseconds."""


@dataclass(frozen=True, slots=True)
class FileSequence:
    """The files of a replica, or of all of them: then rows say whose they are."""

    source: Source
    replica: str
    files: Callable[[], Mapping[str, Path]]
    """Those that are there now, by name."""
    reading: Reading
    extent: Extent | None = None
    envelopes: Debezium | None = None

    def read(self, place: FilePlace = FilePlace()) -> Iterator[Intake | Mark]:  # noqa: B008
        """What the files say from the beginning of a place on, and a mark before each part of them."""
        if place.begin < place.end:
            yield from self._range(self.files()[place.file], place)
        behind: list[str] = []
        while True:
            now = self.files()
            if behind != (behind := [name for name in now if name <= place.file]):
                _check_counted(place, behind, now)
            names = [name for name in now if name >= place.file]
            for name in names:
                if self.reading.waits and is_unfinished(now[name]):
                    break
                part = self._part(place, now[name], is_last=name == names[-1])
                if part is not None:
                    yield from self._range(now[name], part)
                    place = part
            if not self.reading.live or self.reading.stop.wait(PAUSE):
                return

    def again(self, saved: Any, used: int) -> Iterable[Intake | Mark]:
        """What the files say from the place in a mark on, if what was used of them is as it was."""
        place = msgspec.convert(saved, FilePlace)
        if not used:
            place = msgspec.structs.replace(place, end=place.begin, ends=place.begins)
        now = self.files()
        file = now.get(place.file)
        if file is not None:
            _check_kept(file, place)
        elif place.begin < place.end:
            error = FileNotFoundError(f"{place.file} was read in part, and is gone: its other rows are lost")
            error.add_note("Put it back as it was, or begin without a state.")
            raise error
        _check_counted(place, [name for name in now if name <= place.file], now)
        if self.extent is not None:
            self.extent.done += rows_in(one for name, one in now.items() if name < place.file)
            if file is not None and format_of(file.name).is_text:
                self.extent.done += lines_before(file, place.begin)
            elif file is not None and place.begin == place.end > 0:
                self.extent.done += rows_in([file])
        return self.read(place)

    def _part(self, place: FilePlace, file: Path, *, is_last: bool) -> FilePlace | None:
        """What can be read of a file that has not been read; None where that is nothing."""
        is_old, is_text = file.name == place.file, format_of(file.name).is_text
        if is_old:
            _check_kept(file, place)
            if not is_text and place.end:
                return None
        changed = last_changed(file)
        waits = self.reading.waits and is_text
        end = readable(file, is_last=is_last) if waits else file.stat().st_size
        if is_old and end <= place.end:
            return None
        return FilePlace(
            file.name,
            place.number if is_old else place.number + 1,
            place.end if is_old else 0,
            end,
            end_mark(file, end),
            place.ends if is_old else 0,
            max(place.newest, changed),
        )

    def _range(self, file: Path, place: FilePlace) -> Iterator[Intake | Mark]:
        """What a place says, between two marks; at the second all of it has been read."""
        yield Mark(msgspec.to_builtins(place))
        part = file_range(self.source, self.replica, file, place.number, self.envelopes)
        if format_of(file.name).is_text:
            first = lines_before(file, place.begin)
            part = replace(part, begin=place.begin, end=place.end, mark=place.ends, first=first)
        yield from range_intakes(self.source, part, self.extent)
        yield Mark(msgspec.to_builtins(msgspec.structs.replace(place, begin=place.end, begins=place.ends)))


def row_feed(
    source: Source,
    replica: str,
    files: Sequence[Path],
    reading: Reading,
    *,
    look: Callable[[], Mapping[str, Path]] | None = None,
    envelopes: Debezium | None = None,
) -> Feed:
    """The rows of files; ``look`` finds those that are there later, where they are followed."""
    fixed = {file.name: file for file in files}
    if look is not None and reading.live:
        rows = FileSequence(source, replica, look, reading, envelopes=envelopes)
    else:
        once = replace(reading, live=False)
        extent = Extent(rows_in(files))
        rows = FileSequence(source, replica, lambda: fixed, once, extent, envelopes)
    positioned = Positioned("files of rows", rows.again)
    return Feed(source.name, rows.read(), replica, extent=rows.extent, again=True, positioned=positioned)


def _check_kept(file: Path, place: FilePlace) -> None:
    """Raise where what has been read of a file has changed."""
    check_kept(file, place.end, place.ends)
    if place.end and not format_of(file.name).is_text and file.stat().st_size != place.end:
        error = ValueError(f"{file} was read when it had {place.end} bytes, and is another file now")
        error.add_note("Put it back as it was, and give what is new a file of its own, with a later name.")
        raise error


def _check_counted(place: FilePlace, behind: Sequence[str], files: Mapping[str, Path]) -> None:
    """Raise where files stand before the last that was read, and were not read, or changed since."""
    late = [name for name in behind if name != place.file and last_changed(files[name]) > place.newest]
    if not late and len(behind) <= place.number + 1:
        return
    error = ValueError(
        f"files of a replica come in the order of their names, once; {place.number + 1} up to {place.file!r} "
        f"were read, and {', '.join(late or behind[-5:])} came or changed since, so rows of it would be lost"
    )
    error.add_note(f"Give a late file a name after {place.file!r}, and the run goes on.")
    raise error
