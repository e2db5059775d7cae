"""Elements on their way between stages: the rows of several stretches, each payload once.

Where a parcel is a shard's part of another, its stretches are those of the whole: all shards know alike which
channels sent something, in which order, and what was observed of them. A parcel is bytes: a mark with a
version, a JSON header with the stretches and the lengths of the parts, then the parts as Arrow streams: the
columns of the elements, the distinct payloads, their identities. Columns take as few bytes as their values
need (`frame_of_reference`): none, where all lifetimes are equally long, all elements are inserts, or each has
a payload of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.engines.spark.transport.frame_of_reference import narrowed, rows_of_steps, steps, widened
from anabranch.errors import AnabranchError
from anabranch.model.batch import Batch, Kind
from anabranch.model.identity import Words
from anabranch.model.rows import rows_in_runs, rows_without_columns, stacked, take_rows
from anabranch.progress.channel_rows import Stretch

MARK = b"anabranch-parcel-2\n"
NO_PAYLOAD = -1
_FEW = 64


class ParcelError(AnabranchError, ValueError):
    """Bytes that are no parcel of a version known here."""


class _Header(msgspec.Struct):
    stretches: list[tuple[str, str, int, bool, int, int | None, int | None]]
    counts: list[int]
    """How many elements each stretch says."""
    lengths: list[int]
    """Of the parts."""
    least: dict[str, int]
    """Of each column."""
    others: list[tuple[int, int]] | None
    """The elements that are no inserts and their kinds, where they are few; else the kinds are a column."""
    edge: str = ""


@dataclass(frozen=True)
class Parcel:
    """Elements in the order of their stretches; ``row`` counts from the beginning of each."""

    stretches: tuple[Stretch, ...]
    stretch: NDArray[np.int32]
    row: NDArray[np.int64]
    kind: NDArray[np.int8]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    old_end: NDArray[np.int64]
    place: NDArray[np.int32]
    """The row of the payload, or NO_PAYLOAD."""
    payload: pa.RecordBatch
    identities: Words | None = None
    edge: str = ""
    """Which of the edges into a level it is of."""

    def __len__(self) -> int:
        return len(self.kind)

    @classmethod
    def of(cls, stretch: Stretch, batch: Batch, row: NDArray[np.int64] | None = None) -> "Parcel":
        """What one stretch says, with payloads as they are; identities only where the batch has them."""
        count = len(batch)
        row = np.arange(count) if row is None else row
        return cls(
            (replace(stretch, last=stretch.sequence + int(row.max(initial=0))),),
            np.zeros(count, np.int32),
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
            stretch=self.stretch[rows],
            row=self.row[rows],
            kind=self.kind[rows],
            start=self.start[rows],
            end=self.end[rows],
            old_end=self.old_end[rows],
            place=moved[place],
            payload=self.payload if used[:-1].all() else take_rows(self.payload, places),
            identities=None if self.identities is None else self.identities[places],
        )


def to_bytes(parcel: Parcel) -> pa.Buffer:
    """The parcel as bytes, each of its payloads copied once: wide ones are all that a parcel costs."""
    bounds = np.searchsorted(parcel.stretch, np.arange(len(parcel.stretches) + 1))
    is_event = parcel.kind <= Kind.ADJUST
    columns: dict[str, Any] = {"start": parcel.start, "old_end": parcel.old_end}
    columns["span"] = _spans(parcel, is_event)
    columns["step"] = steps(parcel.row, bounds[:-1][np.diff(bounds) > 0])
    if parcel.payload.num_rows != len(parcel) or not _counts_up(parcel.place):
        columns["place"] = parcel.place
    others = np.flatnonzero(parcel.kind != Kind.INSERT)
    few = len(others) <= _FEW
    if not few:
        columns["kind"] = parcel.kind
    least, kept = {}, {}
    for name, column in columns.items():
        least[name], offsets = narrowed(column)
        if offsets is not None:
            kept[name] = pa.array(offsets)
    parts: list[pa.RecordBatch | bytes] = [pa.RecordBatch.from_pydict(kept) if kept else b""]
    parts.append(parcel.payload if parcel.payload.num_columns else _nothing(parcel.payload.num_rows))
    if parcel.identities is not None:
        words = parcel.identities.view(np.int64)
        parts.append(
            pa.RecordBatch.from_pydict({"low": pa.array(words[:, 0]), "high": pa.array(words[:, 1])})
        )
    header = _Header(
        [
            (v.replica, v.channel, v.sequence, v.ordered, v.last, v.snapshot, v.latest)
            for v in parcel.stretches
        ],
        np.diff(bounds).tolist(),
        [_size(part) for part in parts],
        least,
        list(zip(others.tolist(), parcel.kind[others].tolist(), strict=True)) if few else None,
        parcel.edge,
    )
    head = msgspec.json.encode(header)
    begin = b"".join([MARK, len(head).to_bytes(4, "little"), head])
    whole = pa.allocate_buffer(len(begin) + sum(header.lengths))
    with pa.FixedSizeBufferWriter(whole) as sink:
        for part in (begin, *parts):
            _write(sink, part)
    return whole


def _spans(parcel: Parcel, is_event: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How long each lifetime is, modulo 2^64; what is no event is as long as the first one."""
    with np.errstate(over="ignore"):
        spans = parcel.end - parcel.start
    if not is_event.all():
        first = int(np.argmax(is_event))
        spans[~is_event] = spans[first] if is_event.any() else 0
    return spans


def from_bytes(data: bytes | memoryview) -> Parcel:
    """The parcel that the bytes hold; its payloads share them."""
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
    if position != len(view):
        raise ParcelError(f"a parcel says that it has {position} bytes, this has {len(view)}")
    counts = np.array(header.counts, np.int64)
    count = int(counts.sum())
    kept = _batch(parts[0]) if len(parts[0]) else rows_without_columns(0)

    def column(name: str, kind: Any) -> Any:
        offsets = np.asarray(kept.column(name)) if name in kept.schema.names else None
        return widened(header.least[name], offsets, count, kind)

    if header.others is None:
        kinds = column("kind", np.int8)
    else:
        kinds = np.zeros(count, np.int8)
        for row, kind in header.others:
            kinds[row] = kind
    start = column("start", np.int64)
    with np.errstate(over="ignore"):
        end = start + column("span", np.int64)
    end[kinds > Kind.ADJUST] = 0
    identities = None
    if len(parts) > 2:
        words = _batch(parts[2])
        identities = np.stack([np.asarray(words.column(0)), np.asarray(words.column(1))], axis=1).view(
            np.uint64
        )
    return Parcel(
        tuple(Stretch(*stretch) for stretch in header.stretches),
        np.repeat(np.arange(len(counts), dtype=np.int32), counts),
        rows_of_steps(column("step", np.int64), counts),
        kinds,
        start,
        end,
        column("old_end", np.int64),
        column("place", np.int32) if "place" in header.least else np.arange(count, dtype=np.int32),
        _batch(parts[1]),
        identities,
        header.edge,
    )


def joined(parcels: Sequence[Parcel]) -> Parcel:
    """Several parcels as one, with identities where all have them."""
    if len(parcels) == 1:
        return parcels[0]
    stretches = tuple(stretch for parcel in parcels for stretch in parcel.stretches)
    firsts = np.cumsum([0] + [len(parcel.stretches) for parcel in parcels])
    bases = np.cumsum([0] + [parcel.payload.num_rows for parcel in parcels])
    places = [
        np.where(parcel.place == NO_PAYLOAD, NO_PAYLOAD, parcel.place + base)
        for parcel, base in zip(parcels, bases, strict=False)
    ]
    words = [p.identities for p in parcels if p.identities is not None]
    return Parcel(
        stretches,
        np.concatenate([p.stretch + first for p, first in zip(parcels, firsts, strict=False)]).astype(
            np.int32
        ),
        np.concatenate([p.row for p in parcels]),
        np.concatenate([p.kind for p in parcels]),
        np.concatenate([p.start for p in parcels]),
        np.concatenate([p.end for p in parcels]),
        np.concatenate([p.old_end for p in parcels]),
        np.concatenate(places).astype(np.int32),
        stacked([p.payload for p in parcels]),
        np.concatenate(words) if len(words) == len(parcels) else None,
        parcels[0].edge,
    )


def _counts_up(column: NDArray[Any]) -> bool:
    return bool((column == np.arange(len(column))).all())


def _size(part: pa.RecordBatch | bytes) -> int:
    with pa.MockOutputStream() as sink:
        _write(sink, part)
        return int(sink.size())


def _write(sink: pa.NativeFile, part: pa.RecordBatch | bytes) -> None:
    if isinstance(part, bytes):
        sink.write(part)
    else:
        with pa.ipc.new_stream(sink, part.schema) as writer:
            writer.write_batch(part)


def _nothing(rows: int) -> bytes:
    """Rows that hold nothing: Arrow streams forget how many there are."""
    return b"\0" + rows.to_bytes(8, "little")


def _batch(part: memoryview) -> pa.RecordBatch:
    if len(part) == 9:
        return rows_without_columns(int.from_bytes(part[1:], "little"))
    with pa.ipc.open_stream(pa.py_buffer(part)) as reader:
        return reader.read_next_batch()
