"""What a shard says about a micro-batch, and what all shards of a query say together."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from anabranch.engines.spark.query.status_text import text_of
from anabranch.model.batch import KINDS
from anabranch.model.clock import Clock
from anabranch.model.time import BEGINNING

EVENTS = ("insert", "adjust", "update", "delete", "upsert", "snapshot", "incremental")
"""What is told to one shard; stables, attaches and detaches are told to all."""


class Replica(msgspec.Struct):
    """One replica."""

    frontier: int
    lag: int | None
    """Ticks behind the furthest replica; None where either is not a time."""
    attached: bool
    joined: bool
    elements: int
    """Since the query began, as are the counts below."""
    led: int
    disagreements: int
    holes: int
    filled: int
    """Holes of others in which it was the first to show the event."""
    late: int
    refused: int
    removed: int
    """Events that it shows and the output lacks, because the complete replica that led never showed them."""
    complete: bool = True
    holds: bool = False
    """What is final waits for it, since its frontier: it is lossy, and others are further."""
    snapshot: int | None = None
    """The time of the snapshot it begins with, where it has not met the merge, or began alone."""
    since_snapshot: int = 0
    """Rows that begin at that time, because no replica vouches for the time before."""


class ShardStatus(msgspec.Struct):
    """One shard after one micro-batch."""

    shard: int
    case: str
    frontier: int
    advanced: bool
    """The frontier is further than before the micro-batch."""
    received: dict[str, int]
    """Elements that came in, by kind; changes by what they say happened."""
    emitted: dict[str, int]
    """Elements that went out, by kind."""
    quarantined: int
    live: int
    state_bytes: int
    replicas: dict[str, Replica]
    stuck: str | None = None
    dropped: int = 0
    """Rows that were left out and not told, as was asked for."""
    clock: str = Clock.TICKS.name
    """What ticks are to people, by its name."""
    operators: dict[str, dict[str, int]] = {}
    """What each operator of a plan holds and has counted."""
    before: int = BEGINNING
    """The frontier before the micro-batch."""


class Status(msgspec.Struct):
    """A query after one micro-batch, over all its shards."""

    batch: int
    case: str
    frontier: int
    received: dict[str, int]
    emitted: dict[str, int]
    quarantined: int
    live: int
    state_bytes: int
    replicas: dict[str, Replica]
    stuck: str | None = None
    unread: dict[str, int] = {}
    """Of each replica whose source counts its rows (topics), how many there were that it had not read."""
    dropped: int = 0
    clock: str = Clock.TICKS.name
    operators: dict[str, dict[str, int]] = {}
    """What each operator of a plan holds and has counted, over all shards."""

    def __str__(self) -> str:
        return text_of(self)

    def as_dict(self) -> dict[str, Any]:
        """The status as plain values."""
        return msgspec.to_builtins(self)


def together(batch: int, shards: Sequence[ShardStatus]) -> Status:
    """What the shards of a query say, as one. Stables, attaches and detaches are told to every shard."""
    first = shards[0]
    return Status(
        batch,
        first.case,
        min((one.frontier for one in shards), default=BEGINNING),
        {
            k: _sum(shards, "received", k) if k in EVENTS else first.received[k]
            for k in _keys(shards, "received")
        },
        {kind: _sum(shards, "emitted", kind) for kind in KINDS[:2]}
        | {"stable": int(any(one.advanced for one in shards))},
        sum(one.quarantined for one in shards),
        sum(one.live for one in shards),
        sum(one.state_bytes for one in shards),
        {name: _one([s.replicas[name] for s in shards if name in s.replicas]) for name in first.replicas},
        next((one.stuck for one in shards if one.stuck), None),
        dropped=sum(one.dropped for one in shards),
        clock=first.clock,
        operators={
            name: {what: sum(one.operators[name].get(what, 0) for one in shards) for what in counts}
            for name, counts in first.operators.items()
        },
    )


def of_levels(levels: Sequence[Status]) -> Status:
    """What the levels of a query say, the last of them last, as one: it is as far as that is."""
    last = levels[-1]
    if len(levels) == 1:
        return last
    received = {kind: sum(one.received.get(kind, 0) for one in levels) for kind in (*EVENTS, *KINDS[2:])}
    return msgspec.structs.replace(
        last,
        case=" and ".join(one.case for one in levels if one.case),
        received={kind: count for kind, count in received.items() if count},
        live=sum(one.live for one in levels),
        state_bytes=sum(one.state_bytes for one in levels),
        dropped=sum(one.dropped for one in levels),
        replicas={name: one for level in levels for name, one in level.replicas.items()},
        stuck=next((one.stuck for one in levels if one.stuck), None),
        operators={
            f"level {n}: {name}": counts
            for n, one in enumerate(levels, 1)
            for name, counts in one.operators.items()
        },
    )


def nothing() -> Status:
    """What is known of a query that has not said anything: no micro-batch, no replica, no promise."""
    said = dict.fromkeys(KINDS[:3], 0)
    return Status(-1, "", BEGINNING, dict.fromkeys(KINDS, 0), said, 0, 0, 0, {})


def _keys(shards: Sequence[ShardStatus], field: str) -> list[str]:
    found: Mapping[str, None] = dict.fromkeys(key for one in shards for key in getattr(one, field))
    return [kind for kind in (*EVENTS, *KINDS[2:]) if kind in found]


def _sum(shards: Sequence[ShardStatus], field: str, key: str) -> int:
    return sum(getattr(one, field).get(key, 0) for one in shards)


def _one(replicas: Sequence[Replica]) -> Replica:
    first = replicas[0]
    counts = ("elements", "led", "disagreements", "holes", "filled", "late", "refused", "removed")
    summed = {name: sum(getattr(one, name) for one in replicas) for name in (*counts, "since_snapshot")}
    return msgspec.structs.replace(first, **summed)


def events_in(counts: Mapping[str, int]) -> int:
    """How many elements are about events: stables, attaches and detaches are not counted."""
    return sum(counts.get(kind, 0) for kind in EVENTS)
