"""What changes in Delta tables as a source of parcels: read, checked, hashed and packed on the executors.

A table is a replica, or the only one, and a version of it a place in its order. The k-th new versions of all
replicas are read by one task, so that copies of an event meet early.

Offsets are, for each replica, the identity of its table, where reading began, and the next version. Where it
began is in every offset, because Spark asks for the first one again when the first micro-batch runs again.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from anabranch.connectors.delta.descriptions import first_version
from anabranch.connectors.tables.table_error import TableError
from anabranch.engines.spark.parcel_rows import parcel_columns, parcel_rows
from anabranch.engines.spark.query.failure import errors_to_driver
from anabranch.engines.spark.transport.packing import Packing

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from anabranch.connectors.delta.reading import VersionRange

NAME = "anabranch-delta-changes"

Offset = Mapping[str, Any]


class Feeds(msgspec.Struct):
    """What a source is told, as options of Spark's are text."""

    tables: dict[str, str]
    """Of each replica the folder of its table."""
    columns: str
    """Of its rows: an Arrow schema in base 64."""
    names: dict[str, str]
    """The columns that are added to those of the table: op, time, version and replica, by what they are."""
    start: str | int
    versions: int


class ChangesSource(DataSource):
    """What changes in tables as parcels."""

    @classmethod
    def name(cls) -> str:
        """What the format is called."""
        return NAME

    def schema(self) -> "StructType":
        """Rows of parcels."""
        return parcel_columns()

    def streamReader(self, schema: Any) -> "ChangesReader":  # noqa: N802
        """A reader of the changes."""
        return ChangesReader(self.options)


class VersionsPartition(InputPartition):
    """Versions that one task reads, each group by itself."""

    def __init__(self, groups: "list[list[VersionRange]]") -> None:
        self.groups = groups


class ChangesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans what is read on the driver, and reads it on the executors."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.feeds = msgspec.json.decode(options["feeds"], type=Feeds)
        self.packing = msgspec.json.decode(options["packing"], type=Packing)
        self.ids = msgspec.json.decode(options["shards"], type=tuple[int, ...])
        self.tasks = int(options.get("tasks", 1))
        self.target: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Nothing has been read."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """So many versions, which are files of a log."""
        return ReadMaxFiles(self.feeds.versions)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember what is there now."""
        self.target = {name: place["next"] for name, place in self.reportLatestOffset().items()}

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """The end of what is there."""
        return self.latestOffset({}, ReadAllAvailable())

    def latestOffset(self, start: Offset, limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of what is read next: some versions of every table."""
        match limit:
            case ReadAllAvailable():
                most = None
            case ReadMaxFiles(number):
                most = number
            case _:
                most = self.feeds.versions
        with errors_to_driver():
            self._check_given(start)
            return {name: self._reached(name, start.get(name), most) for name in self.feeds.tables}

    def _check_given(self, offset: Offset) -> None:
        absent = [name for name in offset if name not in self.feeds.tables]
        if absent:
            error = TableError(f"the checkpoint has read a replica {absent[0]!r}, and it is not given now")
            error.add_note("Give it again, with the table it had.")
            raise error

    def _reached(self, name: str, place: Mapping[str, Any] | None, most: int | None) -> dict[str, Any]:
        from anabranch.connectors.delta.reading import opened

        table = opened(self.feeds.tables[name])
        last = table.version
        if place is None:
            begin, whole = first_version(self.feeds.start, last)
            place = {"table": table.identity, "begin": begin, "whole": whole, "next": begin}
        table.check_goes_on(place["table"], place["next"])
        end = last + 1 if self.target is None else min(last + 1, self.target.get(name, last + 1))
        reached = max(end if most is None else min(end, place["next"] + most), place["next"])
        return {**place, "next": reached}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Tasks: the k-th versions of all replicas together."""
        from anabranch.connectors.delta.reading import VersionRange

        with errors_to_driver():
            self._check_given(end)
        new = [
            [
                VersionRange(
                    name,
                    self.feeds.tables[name],
                    place["table"],
                    version,
                    whole=place["whole"] and version == place["begin"],
                )
                for version in range(start.get(name, {"next": place["begin"]})["next"], place["next"])
            ]
            for name, place in end.items()
        ]
        groups = [[one for one in turn if one is not None] for turn in zip_longest(*new)]
        return [
            VersionsPartition(groups[n :: self.tasks]) for n in range(max(1, min(self.tasks, len(groups))))
        ]

    def read(self, partition: VersionsPartition) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        """What a task reads, as rows of parcels."""
        from anabranch.connectors.delta.reading import reads

        columns = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(self.feeds.columns)))
        with errors_to_driver():
            for group in partition.groups or [[]]:
                heard = reads(group, columns, self.feeds.names, self.packing.layout)
                yield from parcel_rows(heard, self.packing, self.ids)
