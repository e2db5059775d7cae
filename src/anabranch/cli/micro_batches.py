"""A micro-batch as a line: for people on standard error, or as JSON on standard output."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from anabranch.cli.display import time_field
from anabranch.engines.spark.query.status import events_in
from anabranch.engines.spark.query.status_text import since_snapshots
from anabranch.kernels.merge.status import removals
from anabranch.model.clock import tick_text
from anabranch.model.time import BEGINNING, FOREVER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from anabranch.engines.spark.query.follow import Totals
    from anabranch.engines.spark.query.status import Replica, Status

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MANY = 4
"""Replicas that a line names."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines about micro-batches whose times are on one clock."""

    tick: timedelta | None
    """How long a tick is; None: ticks are numbers."""
    as_json: bool = False

    @classmethod
    def of(cls, merged: DataFrame, *, as_json: bool) -> Lines:
        """Lines about a query that gives these rows."""
        from pyspark.sql import types as t

        kind = merged.schema["start"].dataType
        if isinstance(kind, t.DateType):
            return cls(timedelta(days=1), as_json)
        return cls(None if isinstance(kind, t.LongType) else timedelta(microseconds=1), as_json)

    def tell(self, status: Status, progress: Any) -> None:
        """Print one micro-batch."""
        seconds = progress["durationMs"].get("triggerExecution", 0) / 1000
        if self.as_json:
            print(json.dumps(self.fields(status) | {"seconds": seconds}), flush=True)
        else:
            print(self.line(status, seconds), file=sys.stderr, flush=True)

    def line(self, status: Status, seconds: float) -> str:
        """One micro-batch for people; what is nothing to worry about is left out."""
        parts = [
            f"micro-batch {status.batch}",
            f"in {events_in(status.received):,}",
            f"out {events_in(status.emitted):,}",
            f"stable until {self.time(status.frontier)}",
            *self._replicas(status),
            f"state {_size(status.state_bytes)}",
            f"{seconds:.1f} s",
        ]
        disagreements = sum(one.disagreements for one in status.replicas.values())
        if status.quarantined:
            parts.append(f"{status.quarantined:,} quarantined")
        if status.dropped:
            parts.append(f"{status.dropped:,} dropped")
        if disagreements:
            parts.append(f"{disagreements:,} disagreements so far")
        if status.stuck:
            parts.append("stuck")
        return "  ".join(parts)

    def _replicas(self, status: Status) -> list[str]:
        first = leader(status)
        by_frontier = sorted(status.replicas.items(), key=lambda one: (one[0] != first, -one[1].frontier))
        words = [f"{name} {'leads' if name == first else self._place(one)}" for name, one in by_frontier]
        return [*words[:_MANY], *([f"and {len(words) - _MANY} more"] if len(words) > _MANY else [])]

    def _place(self, one: Replica) -> str:
        if not one.attached:
            return "left"
        if one.snapshot is not None and not one.joined:
            return f"waits until others are at its snapshot of {self.time(one.snapshot)}"
        if one.frontier == BEGINNING:
            return "has promised nothing"
        where = "level" if one.lag == 0 else f"at {self.time(one.frontier)}"
        if one.lag:
            where = f"{self.span(one.lag)} behind"
        return where if one.joined else f"{where}, not joined"

    def time(self, tick: int) -> str:
        """A tick as a time of the clock."""
        if self.tick is None or tick in (BEGINNING, FOREVER):
            return tick_text(tick)
        try:
            moment = _EPOCH + tick * self.tick
        except OverflowError:
            return tick_text(tick)
        if self.tick >= timedelta(days=1):
            return f"{moment:%Y-%m-%d}"
        return f"{moment:%Y-%m-%d %H:%M:%S}" + (f".{moment:%f}".rstrip("0") if moment.microsecond else "")

    def span(self, ticks: int) -> str:
        """So many ticks as a length of time."""
        if self.tick is None:
            return f"{ticks:,}"
        try:
            return str(ticks * self.tick).removesuffix("000")
        except OverflowError:
            return f"{ticks:,}"

    def fields(self, status: Status) -> dict[str, Any]:
        """One micro-batch for programs; times are ticks, null is infinite, what never was is left out."""
        fields = status.as_dict()
        replicas = fields.pop("replicas")
        frontier = fields.pop("frontier")
        return {
            **fields,
            **time_field("frontier", frontier),
            "replicas": {
                name: {key: value for key, value in one.items() if key != "frontier"}
                | time_field("frontier", one["frontier"])
                for name, one in replicas.items()
            },
        }

    def conduct(self, status: Status) -> list[str]:
        """What replicas had and had not since the query began, and whom what is final waits for."""
        told = [
            f"{name} lacked {one.holes:,} events that others had, and was first with {one.filled:,} that "
            "others lacked"
            for name, one in status.replicas.items()
            if one.holes or one.filled
        ]
        told += [
            f"{one.late:,} rows of {name} came when what they say was final"
            for name, one in status.replicas.items()
            if one.late
        ]
        told += since_snapshots(status, self.time)
        removed = removals({name: one.removed for name, one in status.replicas.items()})
        told += [f"{words}; if replicas may lose rows, write lossy = true" for words in removed]
        for name, one in status.replicas.items():
            if one.holds:
                since = (
                    f"since {self.time(one.frontier)}" if one.frontier > BEGINNING else "from the beginning"
                )
                told.append(
                    f"{name} holds what is final {since}; if it is gone for good, write "
                    f'idle = ["{name}"], or have a row of it say detach'
                )
        return told

    def summary(self, totals: Totals) -> dict[str, int]:
        """What all micro-batches came to."""
        return {
            "micro-batches": totals.batches,
            "in": totals.received,
            "out": totals.emitted,
            "quarantined": totals.quarantined,
            "dropped": totals.dropped,
            "disagreements": totals.disagreements,
        }


def leader(status: Status) -> str | None:
    """The replica that is furthest, of those that may lead; of equals the first."""
    able = {
        name: one.frontier
        for name, one in status.replicas.items()
        if one.attached and one.joined and one.frontier > BEGINNING
    }
    return max(able, key=lambda name: able[name], default=None)


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
