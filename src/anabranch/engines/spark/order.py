"""What channels send in a micro-batch, in their own order: parcels come in any."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.engines.spark.transport.parcel import Parcel, joined
from anabranch.model.application import STABLE
from anabranch.model.batch import Batch
from anabranch.model.origin import Origin
from anabranch.model.time import BEGINNING
from anabranch.progress.channel_rows import ChannelRows, Stretch


@dataclass(frozen=True, slots=True)
class ParcelRows:
    """Some rows of a parcel that one stretch says."""

    stretch: Stretch
    parcel: Parcel
    rows: NDArray[np.int64]

    def sequences(self) -> NDArray[np.int64]:
        """The place of each row in its channel."""
        return self.stretch.sequence + self.parcel.row[self.rows]

    def alone(self) -> Parcel:
        """The rows as a parcel that nobody else speaks in."""
        said = self.parcel.take(self.rows)
        return replace(said, stretches=(self.stretch,), stretch=np.zeros(len(said), np.int32))


ENOUGH = 4_096
"""Rows that go through the gate at once; fewer wait for those of other channels: a push costs 0.3 ms."""
BYTES = 8 << 20
"""Bytes of payloads that are pushed, or put into one batch, at once: ten parcels of 5 MB pass through Spark
faster than one of 50 MB."""
TASK_ROWS = 1 << 40
"""More rows than a task reads: the number of a row without a sequence is that of its task and its own."""


def number_of(parcel: Parcel, row: int) -> int:
    """The number of a row of a parcel in the order of its channel."""
    return int(parcel.stretches[parcel.stretch[row]].sequence + int(parcel.row[row]))


def place_text(replica: str, channel: str, number: int, *, by_task: bool = False) -> str:
    """Which row of which channel one is, for people to find it."""
    where = replica if channel in ("", replica) else f"{replica}/{channel}"
    if not by_task:
        return f"{where} row {number}"
    task, row = divmod(number, TASK_ROWS)
    return f"{where}, task {task} row {row}"


class PackedRows:
    """Rows of a parcel as elements, whose payloads are taken out of it where they are needed."""

    __slots__ = ("end", "identity", "kind", "old_end", "parcel", "rows", "start")

    def __init__(self, parcel: Parcel, rows: NDArray[np.int64], identity: tuple[str, ...] | None) -> None:
        self.parcel, self.rows, self.identity = parcel, rows, identity
        self.kind, self.start = parcel.kind[rows], parcel.start[rows]
        self.end, self.old_end = parcel.end[rows], parcel.old_end[rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice) -> "PackedRows":
        return PackedRows(self.parcel, self.rows[rows], self.identity)

    def take(self, rows: NDArray[Any]) -> Batch:
        """Some of the elements, with their origins."""
        taken = self.rows[rows]
        return self.parcel.batch(taken, self.identity).with_origin(origin_of(self.parcel, taken))


@dataclass(frozen=True, slots=True)
class Turn:
    """What one channel sends in one round, from one place in its order to another."""

    stretch: Stretch
    last: int
    parts: list[ParcelRows]


def one_after_the_other(parts: Sequence[ParcelRows]) -> tuple[Parcel, NDArray[np.int64]]:
    """Rows of parcels as rows of one parcel; those of one parcel are not copied."""
    parcel = parts[0].parcel
    if all(part.parcel is parcel for part in parts):
        return parcel, np.concatenate([part.rows for part in parts])
    parcel = joined([part.alone() for part in parts])
    return parcel, np.arange(len(parcel))


def turns_of(parcels: Sequence[Parcel], *, at_one_instant: bool) -> dict[tuple[str, str], list[Turn]]:
    """What every channel of every replica sends in each round.

    Channels without an order send all in one turn where ``at_one_instant``.
    """
    sent = _parts(parcels)
    if at_one_instant:
        sent = {name: _at_one_instant(parts) for name, parts in sent.items()}
    return {name: list(_turns(parts)) for name, parts in sent.items()}


def _parts(parcels: Sequence[Parcel]) -> dict[tuple[str, str], list[ParcelRows]]:
    """What every channel of every replica sends, in order, those without rows for this shard included."""
    found: dict[tuple[str, str], list[ParcelRows]] = {}
    for parcel in parcels:
        bounds = np.searchsorted(parcel.stretch, np.arange(len(parcel.stretches) + 1))
        for n, stretch in enumerate(parcel.stretches):
            rows = np.arange(bounds[n], bounds[n + 1])
            found.setdefault((stretch.replica, stretch.channel), []).append(ParcelRows(stretch, parcel, rows))
    for parts in found.values():
        parts.sort(key=lambda part: part.stretch.sequence)
    return {key: found[key] for key in sorted(found)}


def _at_one_instant(parts: list[ParcelRows]) -> list[ParcelRows]:
    """Rows of one channel as one, where their order is not known."""
    stretch = parts[0].stretch
    if stretch.ordered or len(parts) == 1:
        return parts
    sequence = np.concatenate([part.sequences() for part in parts])
    stretch = replace(stretch, last=max(part.stretch.last for part in parts))
    parcel = replace(
        joined([part.parcel.take(part.rows) for part in parts]),
        stretches=(stretch,),
        stretch=np.zeros(len(sequence), np.int32),
        row=sequence - stretch.sequence,
    )
    return [ParcelRows(stretch, parcel, np.arange(len(sequence)))]


def _turns(parts: list[ParcelRows]) -> Iterator[Turn]:
    """What one channel sends in each round; parts whose ranges overlap are one turn."""
    begin = 0
    while begin < len(parts):
        last, end = parts[begin].stretch.last, begin + 1
        while end < len(parts) and parts[end].stretch.sequence <= last:
            last = max(last, parts[end].stretch.last)
            end += 1
        yield Turn(_whole(parts[begin:end], last), last, _in_order(parts[begin:end]))
        begin = end


def _whole(parts: list[ParcelRows], last: int) -> Stretch:
    """The stretch of parts of one channel whose ranges overlap."""
    first = parts[0].stretch
    if len(parts) == 1:
        return first
    latest = [part.stretch.latest for part in parts if part.stretch.latest is not None]
    return replace(first, last=last, latest=max(latest, default=None))


def channel_rows(
    turns: Sequence[Turn], identity: tuple[str, ...] | None, *, replicas: bool, by_start: bool
) -> Iterator[ChannelRows]:
    """What different channels send in one round, few together where each sends little.

    ``identity`` tells events apart. ``replicas``: what sends has a name. ``by_start``: rows without an order
    are in that of their starts, between attaches and detaches.
    """
    group: list[Turn] = []
    parcels = set[int]()
    count = size = 0
    for turn in turns:
        own = {id(part.parcel) for part in turn.parts}
        if (count >= ENOUGH or size >= BYTES) and len(parcels | own) > 1:
            yield _together(group, identity, replicas=replicas, by_start=by_start)
            group, parcels, count, size = [], set(), 0, 0
        group.append(turn)
        parcels |= own
        for part in turn.parts:
            payload, rows = part.parcel.payload, len(part.rows)
            count += rows
            size += payload.nbytes * rows // max(payload.num_rows, 1)
    if group:
        yield _together(group, identity, replicas=replicas, by_start=by_start)


def _together(
    turns: Sequence[Turn], identity: tuple[str, ...] | None, *, replicas: bool, by_start: bool
) -> ChannelRows:
    parcel, rows = one_after_the_other([part for turn in turns for part in turn.parts])
    counts = [sum(len(part.rows) for part in turn.parts) for turn in turns]
    stretch = np.repeat(np.arange(len(turns), dtype=np.int32), counts)
    stretches = tuple(turn.stretch if replicas else replace(turn.stretch, replica="") for turn in turns)
    if by_start and not all(one.ordered for one in stretches):
        unordered = np.array([not one.ordered for one in stretches])[stretch]
        is_control = parcel.kind[rows] > STABLE
        between = 2 * np.cumsum(is_control) - is_control
        rows = rows[np.lexsort((np.where(unordered, parcel.start[rows], BEGINNING), between, stretch))]
    elements = PackedRows(parcel, rows, identity)
    return ChannelRows(stretches, elements, None if len(stretches) == 1 else stretch, shared=True)


def _in_order(parts: list[ParcelRows]) -> list[ParcelRows]:
    """Parts of one channel whose ranges overlap, cut where another goes on; one part where none has rows."""
    if len(parts) == 1:
        return parts
    sequence = np.concatenate([part.sequences() for part in parts])
    owner = np.repeat(np.arange(len(parts)), [len(part.rows) for part in parts])
    row = np.concatenate([part.rows for part in parts])
    order = np.argsort(sequence, kind="stable")
    cuts = np.flatnonzero(np.diff(owner[order])) + 1
    cut = [
        ParcelRows(parts[owner[run[0]]].stretch, parts[owner[run[0]]].parcel, row[run])
        for run in np.split(order, cuts)
        if len(run)
    ]
    return cut or parts[:1]


def origin_of(parcel: Parcel, rows: NDArray[np.int64]) -> Origin:
    """Which rows of which channels rows of a parcel are."""
    stretch = parcel.stretch[rows]
    first = np.array([stretch.sequence for stretch in parcel.stretches], np.int64)
    channels = tuple(stretch.channel for stretch in parcel.stretches)
    ordered = all(stretch.ordered for stretch in parcel.stretches)
    return Origin(first[stretch] + parcel.row[rows], stretch, channels, ordered)
