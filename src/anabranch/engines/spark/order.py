"""What channels say in a micro-batch, in their own order: parcels come in any."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anabranch.engines.spark.transport.parcel import Parcel, Voice, joined
from anabranch.model.origin import Origin
from anabranch.model.time import FOREVER


@dataclass(frozen=True, slots=True)
class Stretch:
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
    stretches: list[Stretch]


def one_after_the_other(stretches: Sequence[Stretch]) -> tuple[Parcel, NDArray[np.int64]]:
    """Stretches as rows of one parcel; those of one parcel are not copied."""
    parcel = stretches[0].parcel
    if all(stretch.parcel is parcel for stretch in stretches):
        return parcel, np.concatenate([stretch.rows for stretch in stretches])
    parcel = joined([stretch.alone() for stretch in stretches])
    return parcel, np.arange(len(parcel))


def turns_of(parcels: Sequence[Parcel], *, at_one_instant: bool) -> dict[tuple[str, str], list[Turn]]:
    """What every channel of every replica says in each round.

    Channels without an order say all in one turn where ``at_one_instant``.
    """
    spoken = _stretches(parcels)
    if at_one_instant:
        spoken = {name: _at_one_instant(stretches) for name, stretches in spoken.items()}
    return {name: list(_turns(stretches)) for name, stretches in spoken.items()}


def _stretches(parcels: Sequence[Parcel]) -> dict[tuple[str, str], list[Stretch]]:
    """What every channel of every replica says, in order, those that say nothing to this shard included."""
    found: dict[tuple[str, str], list[Stretch]] = {}
    for parcel in parcels:
        bounds = np.searchsorted(parcel.voice, np.arange(len(parcel.voices) + 1))
        for n, voice in enumerate(parcel.voices):
            rows = np.arange(bounds[n], bounds[n + 1])
            found.setdefault((voice.replica, voice.channel), []).append(Stretch(voice, parcel, rows))
    for stretches in found.values():
        stretches.sort(key=lambda stretch: stretch.voice.sequence)
    return {key: found[key] for key in sorted(found)}


def _at_one_instant(stretches: list[Stretch]) -> list[Stretch]:
    """Stretches of one channel as one, where their order is not known."""
    voice = stretches[0].voice
    if voice.ordered or len(stretches) == 1:
        return stretches
    sequence = np.concatenate([stretch.sequences() for stretch in stretches])
    voice = replace(voice, last=max(stretch.voice.last for stretch in stretches))
    parcel = replace(
        joined([stretch.parcel.take(stretch.rows) for stretch in stretches]),
        voices=(voice,),
        voice=np.zeros(len(sequence), np.int32),
        row=sequence - voice.sequence,
    )
    return [Stretch(voice, parcel, np.arange(len(sequence)))]


def _turns(stretches: list[Stretch]) -> Iterator[Turn]:
    """What one channel says in each round; stretches whose ranges overlap are one turn."""
    begin = 0
    while begin < len(stretches):
        last, end = stretches[begin].voice.last, begin + 1
        while end < len(stretches) and stretches[end].voice.sequence <= last:
            last = max(last, stretches[end].voice.last)
            end += 1
        yield Turn(stretches[begin].voice, last, _in_order(stretches[begin:end]))
        begin = end


def _in_order(stretches: list[Stretch]) -> list[Stretch]:
    """Stretches of one channel whose ranges overlap, cut where another goes on."""
    if len(stretches) == 1:
        return stretches
    sequence = np.concatenate([stretch.sequences() for stretch in stretches])
    owner = np.repeat(np.arange(len(stretches)), [len(stretch.rows) for stretch in stretches])
    row = np.concatenate([stretch.rows for stretch in stretches])
    order = np.argsort(sequence, kind="stable")
    cuts = np.flatnonzero(np.diff(owner[order])) + 1
    return [
        Stretch(stretches[owner[part[0]]].voice, stretches[owner[part[0]]].parcel, row[part])
        for part in np.split(order, cuts)
        if len(part)
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
