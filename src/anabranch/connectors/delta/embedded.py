"""What changes in Delta tables as the source of a plan in this process, version by version.

A table is a replica, or the only one. It is read to the version that is its last when the run begins; a live
one is followed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from anabranch.connectors.delta.descriptions import (
    EARLIEST,
    Tables,
    check_package,
    check_start,
    first_version,
    tables_named,
)
from anabranch.engines.embedded.feeds import Extent, Feed, Reading
from anabranch.engines.embedded.intake import Intake, read_intake
from anabranch.engines.embedded.stopping import Stop
from anabranch.model.origin import Origin
from anabranch.plan.node import PlanError
from anabranch.plan.source import Source
from anabranch.rows.layout import SINGLE

if TYPE_CHECKING:
    from anabranch.connectors.delta.reading import VersionRange

PAUSE = 0.5
"""Seconds between looks at a live table."""


@dataclass(frozen=True, slots=True)
class DeltaFeeds:
    """The changes of Delta tables, as `run` takes them for a source."""

    tables: Mapping[str, str]
    op: str = "op"
    time: str | None = "time"
    version: str | None = None
    start: str | int = EARLIEST

    def feeds(self, source: Source, reading: Reading) -> list[Feed]:
        """A feed for each table."""
        if source.layout is None or source.columns is None:
            error = PlanError(f"changes of tables are rows, and {source.name!r} is of elements")
            error.add_note(f"Say what they mean: source(…, start={self.time!r}, op={self.op!r}, key=…).")
            raise error
        several = list(self.tables) != [SINGLE]
        if several and not source.replicated:
            error = PlanError(f"several tables are replicas, and {source.name!r} is not of replicas")
            error.add_note("Give the source replica=… and merge it, or give one table.")
            raise error
        names = {"op": self.op, "time": self.time, "version": self.version}
        names["replica"] = source.layout.replica if several else None
        named = {what: name for what, name in names.items() if name is not None}
        added = {what: name for what, name in named.items() if name in source.columns.names}
        return [self._feed(source, name, source.columns, added, reading) for name in self.tables]

    def _feed(
        self, source: Source, name: str, columns: pa.Schema, added: Mapping[str, str], reading: Reading
    ) -> Feed:
        from anabranch.connectors.delta.reading import opened

        table = opened(self.tables[name])
        begin, whole = first_version(self.start, table.version)
        replica, last = "" if name == SINGLE else name, None if reading.live else table.version
        extent = None if last is None else Extent(max(last + 1 - begin, 0))
        ranges = self._versions(name, table.identity, begin, last, extent, reading.stop, whole=whole)
        return Feed(source.name, _intakes(source, ranges, columns, added), replica, extent=extent, again=True)

    def _versions(
        self,
        name: str,
        identity: str,
        begin: int,
        last: int | None,
        extent: Extent | None,
        stop: Stop,
        *,
        whole: bool,
    ) -> "Iterator[VersionRange]":
        """Versions in order; without a last, those that come, until a stop."""
        from anabranch.connectors.delta.reading import VersionRange, opened

        version = begin
        while last is None or version <= last:
            there = last if last is not None else opened(self.tables[name]).version
            for number in range(version, there + 1):
                yield VersionRange(name, self.tables[name], identity, number, whole and number == begin)
                if extent is not None:
                    extent.done += 1
            version = max(version, there + 1)
            if last is None and stop.wait(PAUSE):
                return


def _intakes(
    source: Source, ranges: "Iterator[VersionRange]", columns: pa.Schema, added: Mapping[str, str]
) -> Iterator[Intake]:
    from anabranch.connectors.delta.reading import VERSION_ROWS, reads

    for part in ranges:
        label = f"{part.path}@{part.version}"
        for turn in reads([part], columns, added, source.reads):
            for read in turn:
                rows = read.sequence - part.version * VERSION_ROWS
                origin = Origin(rows, None, (label,)) if source.reads.sequence is None else None
                yield read_intake(source, read, origin)


def delta_changes(
    tables: Tables,
    *,
    op: str = "op",
    time: str | None = "time",
    version: str | None = None,
    start: str | int = EARLIEST,
) -> DeltaFeeds:
    """What changes in Delta tables, for `run`.

    ``tables`` is one table; or several, each a replica that has the name of its folder; or a mapping from
    names of replicas to tables. Their change data feeds are on (``delta.enableChangeDataFeed``). The source
    has the columns of the table, of which it may leave some out, and those that are added: what happened to a
    row in ``op``, the time of the commit in ``time``, the version of the table in ``version``, and the name
    of the replica in its column ``replica``. It is read from ``start``: earliest (version 0), latest,
    snapshot (the rows that are there now), or a version.
    """
    check_package()
    check_start(start)
    return DeltaFeeds(tables_named(tables), op, time, version, start)
