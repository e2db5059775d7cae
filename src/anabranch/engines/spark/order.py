"""What channels say in a micro-batch, in their own order: parcels come in any."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anabranch.engines.spark.transport.parcel import Parcel, Voice, joined
from anabranch.model.origin import Origin
from anabranch.model.time import FOREVER


@dataclass(frozen=True, slots=True)
class ParcelRows:
    """Some rows of a parcel that one voice says."""

    voice: Voice
    parcel: Parcel
    rows: NDArray[np.int64]

    def sequences(self) -> NDArray[np.int64]:
        """The place of each row in its channel."""
        return self.voice.sequence + self.parcel.row[self.rows]

    def alone(self) -> Parcel:
        """The rows as a parcel that nobody else speaks in."""
        said = self.parcel.take(self.rows)
        return replace(said, voices=(self.voice,), voice=np.zeros(len(said), np.int32))


TASK_ROWS = 1 << 40
"""More rows than a task reads: the number of a row without a sequence is that of its task and its own."""


def number_of(parcel: Parcel, row: int) -> int:
    """The number of a row of a parcel in the order of its channel."""
    return int(parcel.voices[parcel.voice[row]].sequence + int(parcel.row[row]))


def place_text(replica: str, channel: str, number: int, *, by_task: bool = False) -> str:
    """Which row of which channel one is, for people to find it."""
    where = replica if channel in ("", replica) else f"{replica}/{channel}"
    if not by_task:
        return f"{where} row {number}"
    task, row = divmod(number, TASK_ROWS)
    return f"{where}, task {task} row {row}"


@dataclass(frozen=True, slots=True)
class Turn:
    """What one channel says in one round, from one place in its order to another."""

    voice: Voice
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
    """What every channel of every replica says in each round.

    Channels without an order say all in one turn where ``at_one_instant``.
    """
    spoken = _parts(parcels)
    if at_one_instant:
        spoken = {name: _at_one_instant(parts) for name, parts in spoken.items()}
    return {name: list(_turns(parts)) for name, parts in spoken.items()}


def _parts(parcels: Sequence[Parcel]) -> dict[tuple[str, str], list[ParcelRows]]:
    """What every channel of every replica says, in order, those that say nothing to this shard included."""
    found: dict[tuple[str, str], list[ParcelRows]] = {}
    for parcel in parcels:
        bounds = np.searchsorted(parcel.voice, np.arange(len(parcel.voices) + 1))
        for n, voice in enumerate(parcel.voices):
            rows = np.arange(bounds[n], bounds[n + 1])
            found.setdefault((voice.replica, voice.channel), []).append(ParcelRows(voice, parcel, rows))
    for parts in found.values():
        parts.sort(key=lambda part: part.voice.sequence)
    return {key: found[key] for key in sorted(found)}


def _at_one_instant(parts: list[ParcelRows]) -> list[ParcelRows]:
    """Rows of one channel as one, where their order is not known."""
    voice = parts[0].voice
    if voice.ordered or len(parts) == 1:
        return parts
    sequence = np.concatenate([part.sequences() for part in parts])
    voice = replace(voice, last=max(part.voice.last for part in parts))
    parcel = replace(
        joined([part.parcel.take(part.rows) for part in parts]),
        voices=(voice,),
        voice=np.zeros(len(sequence), np.int32),
        row=sequence - voice.sequence,
    )
    return [ParcelRows(voice, parcel, np.arange(len(sequence)))]


def _turns(parts: list[ParcelRows]) -> Iterator[Turn]:
    """What one channel says in each round; parts whose ranges overlap are one turn."""
    begin = 0
    while begin < len(parts):
        last, end = parts[begin].voice.last, begin + 1
        while end < len(parts) and parts[end].voice.sequence <= last:
            last = max(last, parts[end].voice.last)
            end += 1
        yield Turn(parts[begin].voice, last, _in_order(parts[begin:end]))
        begin = end


def _in_order(parts: list[ParcelRows]) -> list[ParcelRows]:
    """Parts of one channel whose ranges overlap, cut where another goes on."""
    if len(parts) == 1:
        return parts
    sequence = np.concatenate([part.sequences() for part in parts])
    owner = np.repeat(np.arange(len(parts)), [len(part.rows) for part in parts])
    row = np.concatenate([part.rows for part in parts])
    order = np.argsort(sequence, kind="stable")
    cuts = np.flatnonzero(np.diff(owner[order])) + 1
    return [
        ParcelRows(parts[owner[run[0]]].voice, parts[owner[run[0]]].parcel, row[run])
        for run in np.split(order, cuts)
        if len(run)
    ]


def origin_of(parcel: Parcel, rows: NDArray[np.int64]) -> Origin:
    """Which rows of which channels rows of a parcel are."""
    voice = parcel.voice[rows]
    first = np.array([voice.sequence for voice in parcel.voices], np.int64)
    channels = tuple(voice.channel for voice in parcel.voices)
    ordered = all(voice.ordered for voice in parcel.voices)
    return Origin(first[voice] + parcel.row[rows], voice, channels, ordered)


def snapshots_of(parcels: Iterable[Parcel]) -> dict[str, int]:
    """Of each replica the least time of the rows of a snapshot that are in a micro-batch, in any shard."""
    found: dict[str, int] = {}
    for voice in (voice for parcel in parcels for voice in parcel.voices):
        if voice.snapshot is not None:
            found[voice.replica] = min(voice.snapshot, found.get(voice.replica, FOREVER))
    return found
