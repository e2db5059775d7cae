"""The status of a query as people read it: a line about all of it, and a table of its replicas."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from anabranch.model.clock import Clock, length_text, tick_text

if TYPE_CHECKING:
    from anabranch.engines.spark.query.status import Replica, Status


def text_of(status: Status) -> str:
    """A status with its times as times and its spans with their units."""
    clock = Clock[status.clock]
    said = ", ".join(f"{count:,} {kind}s" for kind, count in status.emitted.items())
    reached = tick_text(status.frontier, clock)
    lines = [
        f"micro-batch {status.batch}: {status.case or 'nothing yet'}, stable until {reached}",
        f"out {said}; {status.live:,} live events, {status.state_bytes:,} bytes of state"
        + (f", {status.quarantined:,} quarantined" if status.quarantined else "")
        + (f", {status.dropped:,} dropped" if status.dropped else ""),
    ]
    if status.replicas:
        lines += _table(
            [_HEAD, *((name, *_row(one, clock)) for name, one in status.replicas.items())],
        )
    lines += [f"{name} has {count:,} rows unread" for name, count in status.unread.items() if count]
    lines += since_snapshots(status, lambda time: tick_text(time, clock))
    return "\n".join([*lines, *([status.stuck] if status.stuck else [])])


def since_snapshots(status: Status, time: Callable[[int], str]) -> list[str]:
    """Whose rows begin when they were read, because nobody says since when they have been there."""
    return [
        f"{one.since_snapshot:,} rows of {name} begin at its snapshot of {time(one.snapshot)}: no replica "
        "has vouched for the time before"
        for name, one in status.replicas.items()
        if one.snapshot is not None and one.since_snapshot
    ]


_COUNTS = ("elements", "led", "disagreements", "holes", "filled", "late", "refused", "removed")
_HEAD = ("replica", "stable", "lag", *(name.replace("disagreements", "disagrees") for name in _COUNTS), "")


def _row(one: Replica, clock: Clock) -> tuple[str, ...]:
    words = [] if one.complete else ["lossy"]
    if not one.attached:
        words.append("left")
    elif not one.joined and one.snapshot is not None:
        words.append(f"waits until others are at its snapshot of {tick_text(one.snapshot, clock)}")
    elif not one.joined:
        words.append("not joined")
    elif one.holds:
        words.append("holds what is final")
    return (
        tick_text(one.frontier, clock),
        "" if one.lag is None else length_text(one.lag, clock),
        *(f"{getattr(one, name):,}" for name in _COUNTS),
        ", ".join(words),
    )


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]
