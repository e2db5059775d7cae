"""What changes in Delta tables as the source of a plan in this process, version by version.

A table is a replica, or the only one. It is read to the version that is its last when the run begins; a live
one is followed. A place is the version that is next; the rows of a version come in the same order again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from anabranch.connectors.delta.descriptions import (
    EARLIEST,
    Tables,
    check_package,
    check_start,
    first_version,
    tables_named,
)
from anabranch.engines.embedded.feeds import Extent, Feed, Mark, Positioned, Reading
from anabranch.engines.embedded.intake import Intake, read_intake
from anabranch.model.origin import Origin
from anabranch.plan.node import PlanError
from anabranch.plan.source import Source
from anabranch.rows.layout import SINGLE

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
        return [self._feed(source, name, added, reading) for name in self.tables]

    def _feed(self, source: Source, name: str, added: Mapping[str, str], reading: Reading) -> Feed:
        from anabranch.connectors.delta.reading import opened

        opening = opened(self.tables[name])
        begin, whole = first_version(self.start, opening.version)
        last = None if reading.live else opening.version
        extent = None if last is None else Extent(max(last + 1 - begin, 0))
        table = _Table(source, name, opening.path, opening.identity, added, reading, begin, last, extent)
        return Feed(
            source.name,
            table.read(begin, whole=whole),
            "" if name == SINGLE else name,
            extent=extent,
            again=True,
            positioned=Positioned("versions of a Delta table", table.again, table.place(begin, whole=whole)),
        )


class TablePlace(msgspec.Struct, frozen=True):
    """The version that is next; those before it have been read."""

    table: str
    """The identity of the table."""
    next: int
    whole: bool = False
    """Its rows are read in place of what it changed."""
    commit: int = 0
    """What its log is known again by, 0 where there is none yet."""
    before: int = 0
    """The same of the version before it."""


@dataclass(frozen=True, slots=True)
class _Table:
    """A table, which is followed where it is read live."""

    source: Source
    name: str
    """Of the replica."""
    path: str
    identity: str
    added: Mapping[str, str]
    """The columns that are added to those of the table, by what they are."""
    reading: Reading
    begin: int
    last: int | None
    """None: it is followed."""
    extent: Extent | None

    def place(self, version: int, *, whole: bool) -> dict[str, Any]:
        """A place: all before a version has been read."""
        from anabranch.connectors.delta.commits import checksum

        commit, before = checksum(self.path, version), checksum(self.path, version - 1)
        return dict(msgspec.to_builtins(TablePlace(self.identity, version, whole, commit, before)))

    def again(self, saved: Any, used: int) -> Iterator[Intake | Mark]:
        """What the table changed from a place on, if it is the table that was read."""
        from anabranch.connectors.delta.reading import opened

        place = msgspec.convert(saved, TablePlace)
        opened(self.path).check_goes_on(place.table, place.next)
        self._check_same(place.next - 1, place.before)
        if used:
            self._check_same(place.next, place.commit)
        if self.extent is not None and self.last is not None:
            first = min(self.begin, place.next)
            self.extent.size, self.extent.done = self.last + 1 - first, place.next - first
        return self.read(place.next, whole=place.whole)

    def read(self, version: int, *, whole: bool) -> Iterator[Intake | Mark]:
        """What versions changed, a mark before each of them: to the last, or to a stop."""
        from anabranch.connectors.delta.reading import opened

        while True:
            there = opened(self.path).version if self.last is None else self.last
            for number in range(version, there + 1):
                yield Mark(self.place(number, whole=whole))
                yield from self._version(number, whole=whole)
                whole = False
                if self.extent is not None:
                    self.extent.done += 1
            if there >= version:
                version = there + 1
                yield Mark(self.place(version, whole=whole))
            if self.last is not None or self.reading.stop.wait(PAUSE):
                return

    def _version(self, number: int, *, whole: bool) -> Iterator[Intake]:
        from anabranch.connectors.delta.reading import VERSION_ROWS, VersionRange, reads

        assert self.source.columns is not None, "rows have columns"
        label = f"{self.path}@{number}"
        part = VersionRange(self.name, self.path, self.identity, number, whole)
        for turn in reads([part], self.source.columns, self.added, self.source.reads):
            for read in turn:
                rows = read.sequence - number * VERSION_ROWS
                origin = Origin(rows, None, (label,)) if self.source.reads.sequence is None else None
                yield read_intake(self.source, read, origin)

    def _check_same(self, version: int, commit: int) -> None:
        """Raise where the log has another version than the one that was read; one may be cleaned up."""
        from anabranch.connectors.delta.commits import checksum
        from anabranch.connectors.delta.reading import put_back

        now = checksum(self.path, version)
        if commit and now and now != commit:
            raise put_back(f"version {version} of the table {self.path} is not the one that was read")


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
