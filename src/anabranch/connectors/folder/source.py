"""Folders of files as a native source: the files are read, hashed and packed where the executors are.

    feeds/east/0001.parquet      a folder per replica (or `replica=east`), its files in the order of names
    feeds/west/0001.parquet

A folder without sub-folders is one sequence of files, whose rows say whose they are. Files appear whole
(write elsewhere, then rename) and in the order of their names; what is neither passed over by its name nor
read is an error (see `listing`). The k-th new files of all replicas are read by one task, so that
copies of an event meet early.

Offsets are, for each replica, the last name read, how many files that makes, and how much of the last one, if
it is of lines: some may be appended to it (see `growing`); and which edge of the plan it is read for.
"""

import base64
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile, zip_longest
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from anabranch.connectors.files.debezium import Debezium, envelopes_named
from anabranch.connectors.folder.columns import folder_columns
from anabranch.connectors.folder.file_places import EDGE
from anabranch.connectors.folder.growing import continues, is_unfinished, lines_before, position
from anabranch.connectors.folder.listing import listing
from anabranch.connectors.folder.reading import (
    REPLICA,
    FileRange,
    by_folder,
    has_grown,
    last_changed,
    ranges,
    reads,
    rows_of_file,
)
from anabranch.engines.spark.parcel_rows import parcel_columns, parcel_rows
from anabranch.engines.spark.query.failure import errors_to_driver
from anabranch.engines.spark.query.provenance import Provenance
from anabranch.engines.spark.session.row_types import in_types
from anabranch.engines.spark.session.schema_argument import struct_of
from anabranch.engines.spark.session.session import tasks_of
from anabranch.engines.spark.transport.packing import BYTES, Packing
from anabranch.model.zones import zone_named
from anabranch.rows.layout import SINGLE, Layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

NAME = "anabranch-folder"
BYTES_PER_TRIGGER = 512 << 20
FILES_PER_TRIGGER = 100_000

Offset = Mapping[str, Any]


@dataclass(frozen=True)
class Folder:
    """A folder of files, as `merge` takes it in place of a frame."""

    sparkSession: "SparkSession"  # noqa: N815
    path: str
    schema: "StructType"
    options: Mapping[str, str]
    adds_replica: bool = False
    """The column ``replica`` is no column of the files: it holds the names of their folders."""

    @property
    def replica(self) -> str | None:
        """The column in which it says who sent a row, if it adds one."""
        return REPLICA if self.adds_replica else None

    @property
    def op(self) -> str | None:
        """The column in which envelopes say what was done to a row; None: that is for the file to say."""
        form = _envelopes(self.options)
        return None if form is None else form.op

    @property
    def replicas(self) -> tuple[str, ...]:
        """The names of the folders that were there when it was made."""
        now = listing(Path(self.path))
        return tuple(now.files) if self.adds_replica and now.by_replica else ()

    @property
    def channels(self) -> bool:
        """No: the files of a replica are in the order of their names."""
        return False

    def in_zone(self, zone: str | None, instants: Mapping[str, pa.DataType]) -> "Folder":
        """The same, with times that name no zone in this one, unless another was asked for, and instants
        in columns of local times."""
        if zone is None:
            return self
        return replace(self, schema=in_types(self.schema, instants), options={"zone": zone, **self.options})

    def provenance(self, layout: Layout) -> Provenance:
        """The folder, and whether rows are numbered by its files and lines, replica by replica."""
        own = self.adds_replica and layout.replica == REPLICA
        numbered = layout.sequence is None and (own or self.options.get("by_replica") == "false")
        return Provenance((self.path,), self.path if numbered else None)

    def parcels(self, packing: Packing, ids: tuple[int, ...]) -> "DataFrame":
        """The rows of the files as parcels."""
        from pyspark.sql.pandas.types import to_arrow_schema

        zone = self.options.get("zone") or self.sparkSession.conf.get("spark.sql.session.timeZone")
        arrow = by_folder(to_arrow_schema(self.schema, timezone=zone), added=self.adds_replica)
        return (
            self.sparkSession.readStream.format(NAME)
            .options(**self.options)
            .option("path", self.path)
            .option("packing", msgspec.json.encode(packing).decode())
            .option("shards", msgspec.json.encode(ids).decode())
            .option("columns", base64.b64encode(arrow.serialize()).decode())
            .option("tasks", str(tasks_of(self.sparkSession)))
            .load()
        )


def folder(
    spark: "SparkSession",
    path: str | Path,
    *,
    schema: "StructType | str | None" = None,
    by_replica: bool | None = None,
    format: str | Debezium | None = None,  # noqa: A002
    zone: str | None = None,
    files_per_trigger: int | None = None,
    bytes_per_trigger: int | None = None,
    rows_per_trigger: int | None = None,
) -> Folder:
    """A folder of Parquet, Arrow, JSON-lines or CSV files, for `merge`.

    ``schema`` is a schema of Spark's; without it the first Parquet, Arrow or CSV file has it. A file
    that has not the columns it names, or not in types that convert, stops the query; a line of text that does
    not fit is refused alone. ``by_replica``: there is a sub-folder for each replica, or there is none; None
    takes what is there. Where there are sub-folders, the column ``replica`` holds their names; if the schema
    has that column itself, only for rows that do not say it. ``zone`` is the time zone of times that name
    none; None is that of the Spark session.

    With ``format="debezium"`` lines of JSON are envelopes of rows with the columns of ``schema``, to which it
    adds ``op`` and ``time``, for `merge_changes`; others are told by the endings of their names.

    Names that begin with a dot or an underscore and those of temporary files are passed over; any other file
    that cannot be read or placed stops the query, with its name. At most so many files, bytes and rows are
    read per micro-batch (default 512 MiB), at least one file.
    """
    limits = {
        "files_per_trigger": files_per_trigger,
        "bytes_per_trigger": bytes_per_trigger,
        "rows_per_trigger": rows_per_trigger,
    }
    for name, limit in limits.items():
        if limit is not None and limit < 1:
            raise ValueError(f"{name} is 1 or more, not {limit}")
    options = {name: str(limit) for name, limit in limits.items() if limit is not None}
    if zone is not None:
        zone_named(zone)
        options["zone"] = zone
    form = envelopes_named(format)
    if form is not None:
        options["envelopes"] = msgspec.json.encode(form).decode()
    from pyspark.sql.pandas.types import from_arrow_schema

    struct = None if schema is None else struct_of(schema)
    found = folder_columns(path, struct, by_replica, form, from_arrow_schema)
    if found.by_replica is not None:
        options["by_replica"] = "true" if found.by_replica else "false"
    spark.dataSource.register(FolderSource)
    return Folder(spark, str(found.place), found.schema, options, found.adds_replica)


def _envelopes(options: Mapping[str, str]) -> Debezium | None:
    text = options.get("envelopes")
    return None if text is None else msgspec.json.decode(text, type=Debezium)


def listed(place: Path) -> dict[str, dict[str, Path]]:
    """The files of each replica by name, in order; what has no place among them is an error."""
    return listing(place).files


class FolderSource(DataSource):
    """The files of a folder as parcels."""

    @classmethod
    def name(cls) -> str:
        """What the format is called."""
        return NAME

    def schema(self) -> "StructType":
        """Rows of parcels."""
        return parcel_columns()

    def streamReader(self, schema: Any) -> "FolderReader":  # noqa: N802
        """A reader of the folder."""
        return FolderReader(self.options)


class FilesPartition(InputPartition):
    """Ranges of files that one task reads, each group by itself."""

    def __init__(self, groups: list[list[FileRange]]) -> None:
        self.groups = groups


class FolderReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans what is read on the driver, and reads it on the executors."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.path = Path(options["path"])
        self.packing = msgspec.json.decode(options["packing"], type=Packing)
        self.ids = msgspec.json.decode(options["shards"], type=tuple[int, ...])
        self.columns = options["columns"]
        self.tasks = int(options.get("tasks", 1))
        self.by_replica = {"true": True, "false": False}.get(options.get("by_replica", ""))
        self.files = _limit(options, "files_per_trigger")
        self.rows = _limit(options, "rows_per_trigger")
        unlimited = self.files is not None or self.rows is not None
        self.bytes = _limit(options, "bytes_per_trigger") or (None if unlimited else BYTES_PER_TRIGGER)
        self.envelopes = _envelopes(options)
        self.target: dict[str, Any] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Nothing has been read."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """One that is not all: which does not matter, the options are looked at where offsets are made."""
        return ReadMaxFiles(self.files or FILES_PER_TRIGGER)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember what is there now."""
        with errors_to_driver():
            while self._is_unfinished():
                time.sleep(_PAUSE)
            self.target = self._reached({}, None, everything=True)

    def _is_unfinished(self) -> bool:
        there = self._there({})
        return any(is_unfinished(file) for files in there.values() for file in files.values())

    def latestOffset(self, start: Offset, limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of what is read next: a file of each replica, and as many more as the limits allow.

        Were a replica read without the others, they would be late where it has moved the stable.
        """
        with errors_to_driver():
            return self._reached(start, limit, everything=isinstance(limit, ReadAllAvailable))

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """The end of what is there."""
        with errors_to_driver():
            return self._reached({}, None, everything=True)

    def _there(self, start: Offset) -> dict[str, dict[str, Path]]:
        """The files that are there, in the form of those that were read."""
        now = listing(self.path)
        there = now.files if self.by_replica is None else now.in_form(self.path, by_replica=self.by_replica)
        alone = [name for name in start if (name == SINGLE) == now.by_replica and name not in there]
        if alone and not now.empty:
            form = "a folder for each replica" if now.by_replica else "no folder for each replica"
            error = ValueError(f"{self.path} has {form} now, and files of {alone[0]!r} were read before")
            error.add_note("Put the files back as they were, or begin a new checkpoint.")
            raise error
        return there

    def _reached(self, start: Offset, limit: ReadLimit | None, *, everything: bool) -> dict[str, Any]:
        files, size, rows = self.files, self.bytes, self.rows
        match limit:
            case ReadMaxFiles(number):
                files = number
            case ReadMaxBytes(number):
                size = number
            case ReadMaxRows(number):
                rows = number
        reached = {name: dict(place) for name, place in start.items()}
        there = self._there(start)
        new = {name: self._after(start.get(name), name, there[name]) for name in there}
        taken = [0, 0, 0]
        chosen: dict[str, list[Path]] = {}
        for places in zip_longest(*([(name, file) for file in files_] for name, files_ in new.items())):
            turn = [one for one in places if one is not None]
            counts = [rows_of_file(str(file)) for _, file in turn] if rows is not None else ()
            costs = len(turn), sum(file.stat().st_size for _, file in turn), sum(counts)
            before, taken = taken, [now + cost for now, cost in zip(taken, costs, strict=True)]
            limits = zip(taken, (files, size, rows), strict=True)
            if before[0] and not everything and any(most is not None and now > most for now, most in limits):
                break
            for name, file in turn:
                chosen.setdefault(name, []).append(file)
        for name, some in chosen.items():
            reached[name] = self._place(start.get(name), name, some, list(there[name])[-1])
        return reached

    def _place(
        self, before: Mapping[str, Any] | None, replica: str, files: list[Path], last: str
    ) -> dict[str, Any]:
        """Where a replica is when these files of it have been read."""
        old, file = before or _NOTHING, files[-1]
        goes_on = files[0].name == old["last"]
        place = {"last": file.name, "files": old["files"] + len(files) - goes_on, EDGE: self.packing.edge}
        # What is appended meanwhile makes the file newer than its time here, or longer than its size here.
        newest = [old.get("newest", 0), *map(last_changed, files[:-1])]
        if goes_on and len(files) > 1:
            place["continued"] = files[0].stat().st_size
        target = (self.target or {}).get(replica, _NOTHING)
        most = target.get("size") if target["last"] == file.name else None
        place |= position(file, is_last=file.name == last, most=most)
        return place | {"newest": max([*newest, last_changed(file)])}

    def _after(self, place: Mapping[str, Any] | None, replica: str, files: Mapping[str, Path]) -> list[Path]:
        """The files of a replica that have not been read, or not up to their end."""
        target = None if self.target is None else self.target.get(replica, _NOTHING)
        names = [name for name in files if target is None or name <= target["last"]]
        fresh = list(
            takewhile(
                lambda file: not is_unfinished(file),
                (files[name] for name in names if place is None or name > place["last"]),
            )
        )
        if place is None:
            return fresh
        behind = [name for name in names if name <= place["last"]]
        late = [name for name in behind if last_changed(files[name]) > place.get("newest", _NEVER)]
        read = files.get(place["last"])
        if target is not None and target["last"] == place["last"] and target.get("size") == place.get("size"):
            read = None
        goes_on = continues(place, read, is_last=place["last"] == list(files)[-1]) if files else False
        if place["last"] in late and "size" in place and files[place["last"]].stat().st_size > place["size"]:
            late.remove(place["last"])
        if late or len(behind) > place["files"]:
            which = late or behind[-5:]
            error = ValueError(
                f"files of a replica come in the order of their names, once; of {replica}, {place['files']} "
                f"files up to {place['last']!r} were read, and {', '.join(which)} came or changed since"
            )
            error.add_note(f"Give a late file a name after {place['last']!r}, and the query goes on.")
            if late:
                error.add_note(_time_again(files[late[0]], place["newest"]))
            raise error
        return [*([read] if goes_on and read is not None else []), *fresh]

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Tasks: the k-th files of all replicas together, large ones cut where there are few."""
        with errors_to_driver():
            return self._partitions(start, end)

    def _partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        there = self._there(start)
        new: list[list[FileRange]] = []
        count = max((end[name]["files"] - start.get(name, {"files": 0})["files"] for name in end), default=0)
        pieces = -(-self.tasks // max(count, 1))
        for replica, place in end.items():
            before = start.get(replica, _NOTHING)
            names = [n for n in there.get(replica, {}) if before["last"] < n <= place["last"]]
            if len(names) != place["files"] - before["files"]:
                error = FileNotFoundError(
                    f"{place['files'] - before['files']} files of {replica} from {before['last']!r} to "
                    f"{place['last']!r} are to be read, and {len(names)} are there"
                )
                error.add_note("Files are kept until the micro-batch that reads them is complete.")
                raise error
            whole = [
                self._part(replica, there[replica][name], before["files"] + n, place)
                for n, name in enumerate(names)
            ]
            goes_on = self._continued(replica, there.get(replica, {}), before, place)
            new.append([*goes_on, *(part for file in whole for part in ranges(file, pieces))])
        groups = [[one for one in turn if one is not None] for turn in zip_longest(*new)]
        return [FilesPartition(groups[n :: self.tasks]) for n in range(max(1, min(self.tasks, len(groups))))]

    def _part(self, replica: str, file: Path, number: int, place: Mapping[str, Any]) -> FileRange:
        """A file as it was when it was chosen."""
        end = place.get("size") if file.name == place["last"] else None
        changed = _unchanged(file, place.get("newest", _NEVER), end, place.get("ends", 0))
        return FileRange(
            replica,
            str(file),
            number,
            in_folder=file.parent != self.path,
            changed=changed,
            end=end,
            mark=place.get("ends", 0),
            envelopes=self.envelopes,
        )

    def _continued(
        self,
        replica: str,
        files: Mapping[str, Path],
        before: Mapping[str, Any],
        place: Mapping[str, Any],
    ) -> list[FileRange]:
        """What was appended to the file that the micro-batch before had read."""
        same = place["last"] == before["last"]
        end = place.get("size") if same else place.get("continued")
        if end is None or end <= before["size"]:
            return []
        file = files.get(before["last"])
        if file is None:
            error = FileNotFoundError(f"{before['last']} of {replica} was appended to, and is gone")
            error.add_note("Files are kept until the micro-batch that reads them is complete.")
            raise error
        whole = self._part(replica, file, before["files"] - 1, place)
        first = lines_before(file, before["size"])
        return [replace(whole, begin=before["size"], end=end, first=first)]

    def read(self, partition: FilesPartition) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        """What a task reads, as rows of parcels."""
        columns, packing = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.columns))), self.packing
        with errors_to_driver():
            rows, size = packing.rows * packing.shards, BYTES * packing.shards
            for group in partition.groups or [[]]:
                heard = reads(group, columns, packing.layout, rows, size) if group else []
                yield from parcel_rows(heard, packing, self.ids)


_NEVER = 1 << 62
_NOTHING: Mapping[str, Any] = {"last": "", "files": 0}
_PAUSE = 0.1
"""Seconds between looks at a file that is not yet whole."""


def _unchanged(file: Path, newest: int, end: int | None, mark: int) -> int:
    """When a file changed last; raises where that is later than it was chosen, unless it has grown."""
    changed = last_changed(file)
    if changed > newest and (end is None or not has_grown(file, end, mark)):
        error = OSError(f"{file} was written to after it was chosen to be read")
        error.add_note(_time_again(file, newest))
        error.add_note("What is new goes into a file with a later name; lines may be appended to the last.")
        raise error
    return changed


def _time_again(file: Path, newest: int) -> str:
    """How a file gets a time back at which it was not late."""
    time = f"{newest // 1_000_000}.{newest % 1_000_000:06}"
    return f"If its rows are as they were, give it its time again: touch -d @{time} {quote(str(file))}"


def _limit(options: Mapping[str, str], name: str) -> int | None:
    return int(options[name]) if name in options else None
