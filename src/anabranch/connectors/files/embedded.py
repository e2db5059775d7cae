"""Files as the source of a plan in this process: of elements, or of rows where columns have meanings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from anabranch.connectors.files.formats import ROW_ENDINGS, STANDARD
from anabranch.connectors.files.json_rows import as_written, differs_in_lines
from anabranch.connectors.files.local_path import local_path
from anabranch.connectors.files.reading import Source as Recorded
from anabranch.connectors.files.written_folder import written_files
from anabranch.connectors.folder.file_sequence import row_feed
from anabranch.connectors.folder.reading import end_mark
from anabranch.engines.embedded.feeds import Extent, Feed, Mark, Positioned, Reading
from anabranch.engines.embedded.intake import Intake, element_intake
from anabranch.model.batch import Batch
from anabranch.model.origin import Origin
from anabranch.model.validity import Quarantine, Rule, Violation
from anabranch.plan.source import Source
from anabranch.rows.refusal import Refusal


@dataclass(frozen=True, slots=True)
class FileFeeds:
    """One file."""

    path: str
    replica: str = ""
    """Whose rows or elements it holds; none: they say it themselves, or the source is not of replicas."""

    def feeds(self, source: Source, reading: Reading) -> list[Feed]:
        """The file, from its first row to its last."""
        if source.layout is None:
            return [element_feed(source, [self.path], self.replica)]
        return [row_feed(source, self.replica, [_readable(local_path(self.path))], reading)]


@dataclass(frozen=True, slots=True)
class ReplicaFeeds:
    """A file for each replica, or what is at hand of it: a table, rows or elements."""

    inputs: Mapping[str, Any]

    def feeds(self, source: Source, reading: Reading) -> list[Feed]:
        """A feed for each replica, in the order in which they are given."""
        return [
            feed for name, one in self.inputs.items() for feed in self._of(source, str(name), one, reading)
        ]

    def _of(self, source: Source, name: str, given: Any, reading: Reading) -> list[Feed]:
        if not isinstance(given, str | Path):
            return [Feed(source.name, given, name)]
        if Path(given).is_dir():
            error = ValueError(
                f"what is read for a replica is one file, and that of {name!r} is the folder {given}"
            )
            error.add_note("Give the folder in which each replica has a folder of its own.")
            raise error
        return FileFeeds(str(given), name).feeds(source, reading)


def _readable(file: Path) -> Path:
    """A file of rows, if it is there and its ending tells a format."""
    if file.suffix.lower() not in ROW_ENDINGS:
        error = ValueError(f"the ending of {file} tells no format of rows, so it cannot be read")
        error.add_note(f"Known are {' '.join(ROW_ENDINGS)}.")
        raise error
    file.open().close()  # so that a file that is not there is named as everywhere
    return file


def element_feed(source: Source, paths: Iterable[str], replica: str = "") -> Feed:
    """Recorded elements, file after file."""
    recorded = [Recorded.named(path) for path in paths]
    sizes = [0 if one.path == STANDARD else _size(Path(one.path)) for one in recorded]
    extent = Extent(sum(sizes))
    again = all(one.path != STANDARD for one in recorded)

    def after(place: Any, used: int) -> Iterator[Intake | Mark]:
        return _elements(source, recorded, sizes, extent, replica, _first(recorded, place, used))

    items = _elements(source, recorded, sizes, extent, replica)
    positioned = Positioned("files of elements", after) if again else None
    return Feed(source.name, items, replica, extent=extent, again=again, positioned=positioned)


def _first(recorded: Sequence[Recorded], place: Mapping[str, Any], used: int) -> int:
    """The number of the file in a mark, if it is as it was or has only grown."""
    number, name, size = place["number"], place["file"], place["size"]
    path = Path(recorded[number].path) if number < len(recorded) else None
    if path is not None and path.name == name and (not used or _mark_of(path, size) == place["ends"]):
        return int(number)
    now = "is missing now" if path is None else f"is {path} now"
    error = ValueError(
        f"file {number + 1} of elements was {name!r} with {size} bytes, and {now}, which is not the same: "
        "elements would be read twice, or not at all"
    )
    error.add_note("Put it back as it was, and give what is new a later name; or begin without a state.")
    raise error


def _mark_of(path: Path, size: int) -> int:
    """A checksum by which a file is known again, and by its first file a folder that a sink writes."""
    if not path.is_dir():
        return end_mark(path, size)
    files = written_files(str(path))
    return crc32(files[0].name.encode()) if files and size else 0


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(file.stat().st_size for file in path.iterdir() if file.is_file())
    return path.stat().st_size


def _elements(
    source: Source,
    recorded: Sequence[Recorded],
    sizes: Sequence[int],
    extent: Extent,
    replica: str,
    first: int = 0,
) -> Iterator[Intake | Mark]:
    before = extent.done = sum(sizes[:first])
    for file, (one, size) in enumerate(zip(recorded, sizes, strict=True)):
        if file < first:
            continue
        if one.path != STANDARD:
            path = Path(one.path)
            yield Mark({"file": path.name, "number": file, "size": size, "ends": _mark_of(path, size)})
        broken: list[Violation] = []
        number = 0
        for part in one.batches(policy=Quarantine(broken.append), progress=_Within(extent, before, size)):
            batch, origin = part, Origin(np.arange(number + 1, number + 1 + len(part)), None, (one.path,))
            number += len(part)
            refused = [_refusal(violation, one.path, replica) for violation in broken]
            broken.clear()
            if one.format.is_lines and source.columns is not None:
                batch, unfit = _as_declared(batch, source.schema)
                refused += [_unfit(one.path, replica, origin, row, why) for row, why in unfit.items()]
                origin = origin.take(np.delete(np.arange(len(origin)), list(unfit)))
            taken = element_intake(source, batch, origin, replica=replica or None)
            yield Intake(taken.rows, refused)
        before += size
        extent.done = before


def _as_declared(batch: Batch, schema: pa.Schema) -> tuple[Batch, dict[int, str]]:
    """Elements of lines with texts of times and bytes as what the columns of a source say, and those that
    are none."""
    payload, unfit = batch.payload, dict[int, str]()
    for field in schema:
        place = payload.schema.get_field_index(field.name)
        if place < 0 or not differs_in_lines(field.type) or payload.column(place).type == field.type:
            continue
        try:
            column = as_written(payload.column(place), field.type)
        except (ValueError, pa.ArrowException):
            column, wrong = _one_by_one(payload.column(place), field)
            unfit = wrong | unfit
        payload = payload.set_column(place, field, column)
    batch = batch.with_payload(payload)
    return (batch.take(np.delete(np.arange(len(batch)), list(unfit))) if unfit else batch), unfit


def _one_by_one(column: Any, field: pa.Field) -> tuple[Any, dict[int, str]]:
    parts, unfit = [], dict[int, str]()
    for row in range(len(column)):
        try:
            parts.append(as_written(column.slice(row, 1), field.type))
        except (ValueError, pa.ArrowException) as reason:
            parts.append(pa.nulls(1, field.type))
            unfit[row] = f"column {field.name!r}: {reason}"
    return pa.concat_arrays(parts), unfit


def _unfit(path: str, replica: str, origin: Origin, row: int, why: str) -> Refusal:
    place = f"{path} element {origin.number[row]}"
    return Refusal(Rule.MALFORMED.value, why, replica, place, "")


@dataclass(frozen=True, slots=True)
class _Within:
    """How much of all has been read, by how much of one file has."""

    extent: Extent
    before: int
    size: int

    def __call__(self, done: float) -> None:
        self.extent.done = self.before + int(self.size * done)


def _refusal(violation: Violation, path: str, replica: str) -> Refusal:
    place = f"{path}:{violation.position}"
    return Refusal(Rule.MALFORMED.value, violation.detail, replica, place, str(violation.element))
