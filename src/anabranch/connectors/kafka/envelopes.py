"""Elements of a keyed table as Debezium envelopes: how the row of each key changes over time.

Of one task and micro-batch only the net effect on the events counts. At any time the row of a key is the
event that holds then; where several do, the one that began last. Its changes, in the order of time, are the
envelopes of the key: ``c`` where there was none, ``u`` where one follows another, ``d`` where none does,
after which a tombstone of the same key lets the topic be compacted. An event that has an end already when it
comes is thus created and deleted at once.

**Corrections.** What a reader has is the events without end, so only what moves those is told. An end that is
set or taken back (the event is ``d``, or ``c`` again at the end that no longer holds) is told. An end that
moves from one time to another is not: the row is gone either way, and to delete it again could hit the row
that has come since. The reader's rows are right, the time of a delete that it was told may be an early one.

**What a reader has** that applies the envelopes in order is, after every micro-batch, the events without end.
That holds for events that are rows of a table and come in its order: all of a key are in one task, at most
one of them is without end when a micro-batch is over, and a new one begins no earlier than those that earlier
micro-batches told of. A merge of changes by the same key gives this with the policy `HalfFrozen`, under which
a row and the end of the row before it come out together. Under others an end may come alone, micro-batches
after the row that follows; then it would read as a delete of that row.

Stables have no envelope. Ticks that are numbers are taken for microseconds. Values are spelled as `json_rows`
reads them; floats that are no numbers are null, since JSON has none.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import msgspec
import pyarrow as pa

from anabranch.model.batch import Batch, concat
from anabranch.model.events import Events
from anabranch.model.time import FOREVER

CONNECTOR = "anabranch"
"""What envelopes say they are made by."""
_DAY = 86_400_000_000

Record = tuple[bytes, bytes | None]
"""The key of a record of Kafka, and its value."""


def envelopes(parts: Sequence[pa.RecordBatch], key: Sequence[str], name: str) -> list[Record]:
    """The records that the element rows of one task and micro-batch stand for, in the order of time.

    ``key`` names the columns that name a row, ``name`` the source that envelopes say they are from.
    """
    elements = [Batch.from_arrow(_in_ticks(rows)) for rows in parts if len(rows)]
    if not elements:
        return []
    tick = _DAY if pa.types.is_date(parts[0].schema.field("start").type) else 1
    net = Events.changed_by(concat(elements))
    rows = net.payload.to_pylist(maps_as_pydicts="strict")
    told = [
        (time, word, before, after)
        for word, events in _by_key(net, rows, key).items()
        for time, before, after in _changes(events)
    ]
    records: list[Record] = []
    for time, word, before, after in sorted(told, key=lambda change: change[0]):
        records.append((word, _value(before, after, time * tick, name)))
        if after is None:
            records.append((word, None))
    return records


Row = dict[str, Any]


@dataclass(slots=True)
class _Moved:
    """Events of one payload and start: how many more and fewer there are by their ends."""

    row: Row
    start: int
    ends: Counter[int] = field(default_factory=Counter)

    def held(self) -> int:
        """How many were without end, and no longer are."""
        return max(-self.ends[FOREVER], 0)

    def steps(self) -> Iterator[tuple[int, int]]:
        """The times at which one comes (1) or goes (-1), as far as a reader has to be told."""
        old, new = sorted((-self.ends).elements()), sorted((+self.ends).elements())
        while old or new:
            is_new = not old
            was = old.pop() if old else self.start
            end = new.pop() if new else self.start
            if is_new:
                yield self.start, 1
            if (is_new or was == FOREVER) and end != FOREVER:
                yield end, -1
            if not is_new and end == FOREVER:
                yield was, 1


def _in_ticks(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same elements with days as numbers."""
    for place, column in enumerate(rows.schema):
        if column.name in ("start", "end", "old_end") and pa.types.is_date(column.type):
            days = rows.column(place).cast(pa.date32()).cast(pa.int32())
            rows = rows.set_column(place, column.name, days)
    return rows


def _by_key(net: Events, rows: list[Row], key: Sequence[str]) -> dict[bytes, list[_Moved]]:
    """What has moved, by the words for the key of its row."""
    found: dict[bytes, dict[tuple[int, ...], _Moved]] = defaultdict(dict)
    times = zip(net.identity.tolist(), net.start.tolist(), net.end.tolist(), net.count.tolist(), strict=True)
    for row, (identity, start, end, count) in zip(rows, times, strict=True):
        word = msgspec.json.encode({column: row[column] for column in key}, enc_hook=str)
        found[word].setdefault((*identity, start), _Moved(row, start)).ends[end] += count
    return {word: list(events.values()) for word, events in found.items()}


def _changes(events: list[_Moved]) -> Iterator[tuple[int, Row | None, Row | None]]:
    """How the row of one key changes: when, the row before and the row after."""
    there = [event.held() for event in events]
    steps = sorted((time, n, step) for n, event in enumerate(events) for time, step in event.steps())
    row = _latest(events, there)
    for time, together in groupby(steps, key=lambda step: step[0]):
        for _, n, step in together:
            there[n] += step
        before, row = row, _latest(events, there)
        if row is not before:
            yield time, None if before is None else before.row, None if row is None else row.row


def _latest(events: list[_Moved], there: list[int]) -> _Moved | None:
    """Of the events that are there the one that began last."""
    held = [event for event, count in zip(events, there, strict=True) if count > 0]
    return max(held, key=lambda event: event.start, default=None)


def _value(before: Row | None, after: Row | None, time: int, name: str) -> bytes:
    times = {"ts_ms": time // 1000, "ts_us": time}
    envelope = {
        "before": before,
        "after": after,
        "source": {"connector": CONNECTOR, "name": name, **times},
        "op": "c" if before is None else "d" if after is None else "u",
        **times,
    }
    return msgspec.json.encode(envelope, enc_hook=str)
