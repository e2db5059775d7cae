"""What each output policy costs and gives: corrections, and how long until an event is out, right and final.

./run bench merge_policies

Three replicas of one workload, in which three events of ten have a wrong end at first, are merged one element
of each in turn. Time is event time: now is the latest start that any input has shown, so the figures repeat
exactly. Events of the last two durations are merged and not measured: now stands still before they are final.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anabranch import (
    Batch,
    EveryChange,
    Fact,
    FinalOnly,
    FirstThenFinal,
    FollowLeader,
    HalfFrozen,
    Merger,
    OutputPolicy,
    Quorum,
)
from anabranch.model.batch import Kind, concat
from anabranch.model.time import BEGINNING
from anabranch.testing.workload import Workload

WORKLOAD = Workload(events=7_000, active=1000, max_gap=20, delay=2000, revisions=0.3, payload_bytes=12)
REPLICAS = 3
POLICIES: tuple[OutputPolicy, ...] = (
    EveryChange(),
    FirstThenFinal(),
    FollowLeader(),
    FollowLeader(by="latest"),
    FollowLeader(by="unfrozen"),
    Quorum(fraction=0.5),
    Quorum(fraction=1.0),
    HalfFrozen(),
    FinalOnly(),
    FirstThenFinal(lag=2000),
    HalfFrozen(lag=2000),
)


@dataclass(frozen=True, slots=True)
class Said:
    """Elements in the order in which they were said, each with when that was."""

    elements: Batch
    now: NDArray[np.int64]

    def of(self, kind: Kind) -> "Said":
        """The elements of one kind."""
        rows = np.flatnonzero(self.elements.kind == kind)
        return Said(self.elements.take(rows), self.now[rows])

    def changes(self) -> "Said":
        """The elements that are about an event."""
        rows = np.flatnonzero(self.elements.kind != Kind.STABLE)
        return Said(self.elements.take(rows), self.now[rows])

    def keys(self) -> NDArray[np.void]:
        """What tells events apart: payload and start."""
        start = self.elements.start.astype(np.uint64)
        columns = np.column_stack([start, self.elements.identities])
        return np.ascontiguousarray(columns).view([("", np.uint64)] * 3).ravel()


def in_turn(replicas: list[Batch]) -> list[tuple[str, Batch]]:
    """One element of each replica after the other, until all have ended."""
    longest = max(map(len, replicas))
    return [
        (str(number), replica[row : row + 1])
        for row in range(longest)
        for number, replica in enumerate(replicas)
        if row < len(replica)
    ]


def merged(turns: list[tuple[str, Batch]], now: NDArray[np.int64], policy: OutputPolicy) -> Said:
    """What comes out of a merge, and when."""
    merger = Merger(policy=policy)
    for number in range(REPLICAS):
        merger.attach(str(number), properties=[Fact.KEYED])
    out = [merger.push(name, element) for name, element in turns]
    return Said(concat(out), np.repeat(now, [len(batch) for batch in out]))


def first_and_last(said: Said) -> tuple[NDArray[np.void], NDArray[np.int64], NDArray[np.int64]]:
    """The events that elements are about, in order, and when each was first and last spoken of."""
    keys, first = np.unique(said.keys(), return_index=True)
    last = len(said.now) - 1 - np.unique(said.keys()[::-1], return_index=True)[1]
    return keys, said.now[first], said.now[last]


def final_at(out: Said, ends: NDArray[np.int64], closed: int) -> NDArray[np.int64]:
    """When the stable of the output passed each end; the end of time passes all."""
    stables = out.of(Kind.STABLE)
    when = np.append(stables.now, closed)
    return when[np.searchsorted(stables.elements.start, ends, side="right")]


def main() -> None:
    """Merge under each policy and print."""
    replicas = [concat(list(WORKLOAD.replica(number))) for number in range(REPLICAS)]
    turns = in_turn(replicas)
    whole = concat([element for _, element in turns])
    starts = np.where(whole.kind == Kind.INSERT, whole.start, BEGINNING)
    now = np.maximum.accumulate(starts)
    events, shown, _ = first_and_last(Said(whole, now).of(Kind.INSERT))
    inserts, adjusts = (int((whole.kind == kind).sum()) for kind in (Kind.INSERT, Kind.ADJUST))
    begins = events.view(np.uint64).reshape(-1, 3)[:, 0].astype(np.int64)
    measured = begins < begins.max() - 2 * WORKLOAD.duration
    late = f"one in {1 / WORKLOAD.disorder:.0f} comes up to {WORKLOAD.delay} late"
    print(f"in: {REPLICAS} replicas of {len(events)} events, {inserts} inserts and {adjusts} adjusts in all")
    print(f"events last {WORKLOAD.duration} ticks, {late}; {measured.sum()} are measured\n")
    print(
        f"{'policy':<24}{'inserts':>8}{'adjusts':>8}{'per insert':>11}"
        f"{'out mean':>10}{'out 99%':>9}{'right mean':>12}{'final mean':>12}"
    )
    for policy in POLICIES:
        out = merged(turns, now, policy)
        keys, first, last = first_and_last(out.changes())
        assert (keys == events).all(), "every event is out in the end"
        final = last
        if not isinstance(policy, FinalOnly):
            final = final_at(out, begins + WORKLOAD.duration, int(now[-1]))
        until_out, until_right, until_final = ((when - shown)[measured] for when in (first, last, final))
        gave, corrected = (int((out.elements.kind == kind).sum()) for kind in (Kind.INSERT, Kind.ADJUST))
        print(
            f"{policy!s:<24}{gave:>8}{corrected:>8}{corrected / gave:>11.2f}"
            f"{until_out.mean():>10.0f}{np.percentile(until_out, 99):>9.0f}"
            f"{until_right.mean():>12.0f}{until_final.mean():>12.0f}"
        )


if __name__ == "__main__":
    main()
