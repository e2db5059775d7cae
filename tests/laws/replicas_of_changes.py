"""What every plan that merges replicas of changes obeys, whoever begins with a snapshot and when.

What comes out is valid, what is final is as in the log, and at the end it is the versions of the log, or
where nobody vouches for the time before a snapshot those since then; wherever it is dumped and goes on.
"""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from laws.table_histories import (
    SCHEMA,
    Said,
    interleaved,
    logs,
    numbered,
    relation_of,
    rows_at,
    snapshot_of,
    table_of,
    time_heard,
    with_progress,
)

import anabranch as ab
from anabranch import FOREVER, OutputPolicy, Relation, difference
from anabranch.oracle.changes import Version
from anabranch.oracle.snapshots import versions_since
from anabranch.plan.stream import Stream

POLICIES = [
    None,
    ab.FirstThenFinal(),
    ab.EveryChange(),
    ab.HalfFrozen(),
    ab.FinalOnly(),
    ab.FollowLeader(),
    ab.Quorum(fraction=1.0),
]


def table(policy: OutputPolicy | None = None, replicas: tuple[str, ...] = (), **settings: Any) -> Stream:
    """The rows of a table whose changes replicas send in an order of their own."""
    source = ab.source(
        "table",
        SCHEMA,
        start="at",
        op="op",
        key=("site", "id"),
        replica="replica",
        sequence="number",
        replicas=replicas,
        **settings,
    )
    return source.merge(policy=policy)


class Driven(Protocol):
    """State: a plan that is run, and what has come out of it."""

    output: Relation
    refused: list[Any]

    def receive(self, said: list[Said]) -> None:
        """Give it rows; what comes out is valid."""

    def restart(self) -> None:
        """Go on with what was dumped."""

    def finish(self) -> int:
        """End it, once all has been given; how much it then holds."""


class DrivenJob:
    """State: a job of a plan, and what has come out of it."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.output = stream, Relation()
        self.refused: list[ab.Violation] = []
        self.job = self._open(None)

    def _open(self, state: bytes | None) -> ab.Job:
        return self.stream.open(state, on_invalid=ab.Quarantine(self.refused.append), on_late=ab.Raise())

    def receive(self, said: list[Said]) -> None:
        """Push rows."""
        self.output.apply(self.job.passes.push("table", [vars(one) for one in said])[""])

    def restart(self) -> None:
        """Go on with what was dumped."""
        self.job = self._open(self.job.dump())

    def finish(self) -> int:
        """Close the job."""
        self.output.apply(self.job.passes.close()[""])
        return self.job.status().live


def gives_the_versions_of_the_log(
    random: Random,
    policy: OutputPolicy | None,
    remade: Callable[[Stream], Stream] | None = None,
    driven: Callable[[Stream], Driven] = DrivenJob,
) -> None:
    """Draw replicas of a log, and check the law.

    ``remade`` makes another plan of the one that is drawn, and ``driven`` is who runs it.
    """
    log = logs(random)
    vouched = random.random() < 0.7
    copies, positions = [], {}
    for name in "bc"[: random.choice((1, 2))]:
        position = random.randrange(1, len(log))
        _, rows = snapshot_of(random, name, log, position)
        if rows:
            positions[name] = position
            after = with_progress(random, name, log[position:])
            copies.append(numbered([*rows, *after, Said(name, "stable", None)]))
    if vouched or not copies:
        copies.append(numbered([*with_progress(random, "a", log), Said("a", "stable", None)]))
    stream = table(policy, tuple(copy[0].replica for copy in copies), by_time=random.random() < 0.3)
    batches = interleaved(random, copies)
    versions = table_of(log).versions()
    if not vouched and positions:
        versions = _since_the_first(log, positions, batches)
    _check(driven(stream if remade is None else remade(stream)), random, batches, versions)


def _since_the_first(log: list[Said], positions: dict[str, int], batches: list[list[Said]]) -> list[Version]:
    times = {name: time_heard(batches, name) for name in positions}
    first = min(times, key=lambda name: (times[name], name))
    position = positions[first]
    rows = [dict(zip(("site", "id", "v"), row, strict=True)) for row in rows_at(log, position)]
    return versions_since(("site", "id"), times[first], rows, [said.change() for said in log[position:]])


def _check(driven: Driven, random: Random, batches: list[list[Said]], versions: list[Version]) -> None:
    for batch in batches:
        driven.receive(batch)
        if random.random() < 0.4:
            driven.restart()
        reached = driven.output.frontier
        final = Counter(
            (tuple(sorted(one.payload.items())), one.start, one.end)
            for one in driven.output.events()
            if one.end < reached
        )
        assert final == Counter(
            (tuple(sorted(one.row.items())), one.start, one.end) for one in versions if one.end < reached
        )
    held = driven.finish()
    assert driven.refused == []
    assert driven.output.frontier == FOREVER
    assert difference(driven.output, relation_of(versions)) is None
    assert held == 0
