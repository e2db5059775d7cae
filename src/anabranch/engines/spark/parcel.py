"""Elements on their way between stages: what several voices said, each payload once.

A voice is one stretch of one channel of one replica, from a sequence number on. Where its order is known
(``ordered``), a stable stands where it was said; where it is not, all stables of a micro-batch count at its
end. A parcel is bytes: a mark with a version, a JSON header with the voices and the lengths of the parts,
then the parts as Arrow streams: the columns of the elements, the distinct payloads, their identities.
Columns that say nothing (one voice, no adjusts, each element with a payload of its own) are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.model.batch import Batch
from anabranch.model.identity import Words
from anabranch.model.rows import rows_in_runs, rows_without_columns, stacked, take_rows

MARK = b"anabranch-parcel-1\n"
NO_PAYLOAD = -1


class ParcelError(ValueError):
    """Bytes that are no parcel of a version known here."""


@dataclass(frozen=True, slots=True)
class Voice:
    """One stretch of what one channel of one replica says.

    Where a parcel is a shard's part of another, its voices are those of the whole, and so are their ranges:
    all shards know alike who spoke, and in which order, whoever of them was told an event.
    """

    replica: str
    channel: str = ""
    sequence: int = 0
    ordered: bool = True
    last: int = 0
    """The sequence of the last row of the stretch."""


class _Header(msgspec.Struct):
    voices: list[tuple[str, str, int, bool, int]]
    rows: int
    lengths: list[int]
    columns: list[str]


@dataclass(frozen=True)
class Parcel:
    """Elements in the order of their voices; ``row`` counts from the beginning of each voice's stretch."""

    voices: tuple[Voice, ...]
    voice: NDArray[np.int16]
    row: NDArray[np.int64]
    kind: NDArray[np.int8]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    old_end: NDArray[np.int64]
    place: NDArray[np.int32]
    """The row of the payload, or NO_PAYLOAD."""
    payload: pa.RecordBatch
    identities: Words | None = None

    def __len__(self) -> int:
        return len(self.kind)

    @classmethod
    def of(cls, voice: Voice, batch: Batch, row: NDArray[np.int64] | None = None) -> "Parcel":
        """What one voice says, with payloads as they are; identities only where the batch has them."""
        count = len(batch)
        row = np.arange(count) if row is None else row
        return cls(
            (replace(voice, last=voice.sequence + int(row.max(initial=0))),),
            np.zeros(count, np.int16),
            row,
            batch.kind,
            batch.start,
            batch.end,
            batch.old_end,
            np.arange(count, dtype=np.int32),
            batch.payload,
            batch.__dict__.get("identities"),
        )

    def batch(self, rows: NDArray[np.int64] | slice, identity: tuple[str, ...] | None = None) -> Batch:
        """Some of the elements, each with its payload; whoever speaks is for the caller to know."""
        place = self.place[rows]
        batch = Batch(
            self.kind[rows], self.start[rows], self.end[rows], self.old_end[rows], self._payloads(place)
        )
        if self.identities is None or not len(self.identities):
            return batch
        return batch.identified(self.identities[place], identity)

    def _payloads(self, place: NDArray[np.int32]) -> pa.RecordBatch:
        if not self.payload.num_columns:
            return rows_without_columns(len(place))
        if (place == NO_PAYLOAD).any():
            return self.payload.take(pa.array(place, mask=place == NO_PAYLOAD))
        return rows_in_runs(self.payload, place.astype(np.int64))

    def take(self, rows: NDArray[np.int64]) -> "Parcel":
        """Some of the elements, with those payloads that they have."""
        place = self.place[rows]
        used = np.zeros(self.payload.num_rows + 1, np.bool_)
        used[place] = True
        used[-1] = False
        places = np.flatnonzero(used)
        moved = np.concatenate([np.cumsum(used[:-1], dtype=np.int32) - 1, [NO_PAYLOAD]]).astype(np.int32)
        return replace(
            self,
            voice=self.voice[rows],
            row=self.row[rows],
            kind=self.kind[rows],
            start=self.start[rows],
            end=self.end[rows],
            old_end=self.old_end[rows],
            place=moved[place],
            payload=self.payload if used[:-1].all() else take_rows(self.payload, places),
            identities=None if self.identities is None else self.identities[places],
        )


def to_bytes(parcel: Parcel) -> bytes:
    """The parcel as bytes."""
    count = len(parcel)
    columns: dict[str, Any] = {"kind": parcel.kind, "start": parcel.start, "end": parcel.end}
    if parcel.old_end.any():
        columns["old_end"] = parcel.old_end
    if len(parcel.voices) > 1:
        columns["voice"] = parcel.voice
    if not _counts_up(parcel.row):
        small = not count or int(parcel.row.max()) < 2**31
        columns["row"] = parcel.row.astype(np.int32 if small else np.int64)
    if parcel.payload.num_rows != count or not _counts_up(parcel.place):
        columns["place"] = parcel.place
    parts = [_stream(pa.RecordBatch.from_pydict({name: pa.array(c) for name, c in columns.items()}))]
    parts.append(_stream(parcel.payload) if parcel.payload.num_columns else _nothing(parcel.payload.num_rows))
    if parcel.identities is not None:
        words = parcel.identities.view(np.int64)
        parts.append(
            _stream(pa.RecordBatch.from_pydict({"low": pa.array(words[:, 0]), "high": pa.array(words[:, 1])}))
        )
    header = _Header(
        [(v.replica, v.channel, v.sequence, v.ordered, v.last) for v in parcel.voices],
        count,
        [len(part) for part in parts],
        list(columns),
    )
    head = msgspec.json.encode(header)
    return b"".join([MARK, len(head).to_bytes(4, "little"), head, *parts])


def from_bytes(data: bytes | memoryview) -> Parcel:
    """The parcel that the bytes hold; its columns share them."""
    view = memoryview(data)
    if bytes(view[: len(MARK)]) != MARK:
        error = ParcelError(f"a parcel begins with {MARK!r}, this begins with {bytes(view[: len(MARK)])!r}")
        error.add_note(
            "It was written by another version; let that version finish, or start a new checkpoint."
        )
        raise error
    begin = len(MARK) + 4
    length = int.from_bytes(view[len(MARK) : begin], "little")
    header = msgspec.json.decode(view[begin : begin + length], type=_Header)
    position, parts = begin + length, []
    for size in header.lengths:
        parts.append(view[position : position + size])
        position += size
    columns, count = _batch(parts[0]), header.rows
    payload = _batch(parts[1])

    def column(name: str, otherwise: Any) -> Any:
        return np.asarray(columns.column(name)) if name in header.columns else otherwise

    identities = None
    if len(parts) > 2:
        words = _batch(parts[2])
        identities = np.stack([np.asarray(words.column(0)), np.asarray(words.column(1))], axis=1).view(
            np.uint64
        )
    return Parcel(
        tuple(Voice(*voice) for voice in header.voices),
        column("voice", np.zeros(count, np.int16)),
        column("row", np.arange(count)).astype(np.int64),
        column("kind", None),
        column("start", None),
        column("end", None),
        column("old_end", np.zeros(count, np.int64)),
        column("place", np.arange(count, dtype=np.int32)),
        payload,
        identities,
    )


def joined(parcels: Sequence[Parcel]) -> Parcel:
    """Several parcels as one, with identities where all have them."""
    if len(parcels) == 1:
        return parcels[0]
    voices = tuple(voice for parcel in parcels for voice in parcel.voices)
    firsts = np.cumsum([0] + [len(parcel.voices) for parcel in parcels])
    bases = np.cumsum([0] + [parcel.payload.num_rows for parcel in parcels])
    places = [
        np.where(parcel.place == NO_PAYLOAD, NO_PAYLOAD, parcel.place + base)
        for parcel, base in zip(parcels, bases, strict=False)
    ]
    words = [p.identities for p in parcels if p.identities is not None]
    return Parcel(
        voices,
        np.concatenate([p.voice + first for p, first in zip(parcels, firsts, strict=False)]).astype(np.int16),
        np.concatenate([p.row for p in parcels]),
        np.concatenate([p.kind for p in parcels]),
        np.concatenate([p.start for p in parcels]),
        np.concatenate([p.end for p in parcels]),
        np.concatenate([p.old_end for p in parcels]),
        np.concatenate(places).astype(np.int32),
        stacked([p.payload for p in parcels]),
        np.concatenate(words) if len(words) == len(parcels) else None,
    )


def _counts_up(column: NDArray[Any]) -> bool:
    return bool((column == np.arange(len(column))).all())


def _stream(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def _nothing(rows: int) -> bytes:
    """Rows that hold nothing: Arrow streams forget how many there are."""
    return b"\0" + rows.to_bytes(8, "little")


def _batch(part: memoryview) -> pa.RecordBatch:
    if len(part) == 9:
        return rows_without_columns(int.from_bytes(part[1:], "little"))
    with pa.ipc.open_stream(pa.py_buffer(part)) as reader:
        return reader.read_next_batch()
