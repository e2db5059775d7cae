"""Debezium envelopes as changes of a table: the row, what happened to it (``op``) and when (``time``).

An envelope is JSON, by itself or in ``payload`` beside its ``schema``; both occur in one topic. The row is
``after``, of a delete ``before``, which may have nothing but the key; it is read as `json_rows` reads a row.
The time is that of the commit: ``source.ts_us`` or ``source.ts_ms``, else that of the envelope. A row that is
read beside the log, in an incremental snapshot (``source.snapshot``), has the op ``incremental``, because it
is of no snapshot of the whole table.

**Passed over**, neither rows nor refused: tombstones, begins and ends of transactions, heartbeats, changes of
a schema, and messages (op ``m``). **Refused**: a truncate, because it ends rows that it does not name; an op
that is not known; an envelope without the row that its op needs, or without a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from anabranch.connectors.files.json_rows import json_rows
from anabranch.connectors.files.values import Values
from anabranch.model.spelling import did_you_mean

IMAGES = {"c": "after", "r": "after", "u": "after", "d": "before"}
"""Where the row of an envelope is, by its op."""
READ, MESSAGE, TRUNCATE = "r", "m", "t"
INCREMENTAL = "incremental"


@dataclass(frozen=True, slots=True)
class Debezium:
    """An envelope per value, and what the columns are called that it adds to those of the table.

    >>> columns = pa.schema([("id", pa.int64()), ("op", pa.string()), ("time", pa.timestamp("us"))])
    >>> value = b'{"before": null, "after": {"id": 7}, "op": "c", "source": {"ts_ms": 5000}}'
    >>> Debezium().read([value, None], columns).rows.to_pylist()
    [{'id': 7, 'op': 'c', 'time': datetime.datetime(1970, 1, 1, 0, 0, 5)}]
    """

    op: str = "op"
    time: str = "time"

    def read(self, values: Sequence[bytes | None], columns: pa.Schema) -> Values:
        """The changes that values stand for; ``columns`` are those of the table and the two added."""
        numbers, changes, refused = [], [], []
        for n, value in enumerate(values):
            try:
                change = None if value is None else _change(value)
            except (ValueError, RecursionError) as reason:
                refused.append((n, str(reason)))
                continue
            if change is not None:
                numbers.append(n)
                changes.append(change)
        table = pa.schema([field for field in columns if field.name not in (self.op, self.time)])
        found = json_rows([row for row, _, _ in changes], table)
        refused += [(numbers[n], reason) for n, reason in found.refused]
        kept = range(len(changes)) if found.origin is None else found.origin
        named: dict[str, Any] = dict(zip(table.names, found.rows.columns, strict=True))
        named[self.op] = pa.array([changes[n][1] for n in kept], pa.string())
        instants = pa.array([changes[n][2] for n in kept], pa.int64()).cast(pa.timestamp("us", "UTC"))
        named[self.time] = instants.cast(columns.field(self.time).type)
        rows = pa.RecordBatch.from_arrays([named[name] for name in columns.names], schema=columns)
        return Values(rows, np.array([numbers[n] for n in kept], np.int64), sorted(refused))


def envelopes_named(form: str | Debezium | None) -> Debezium | None:
    """What lines are, by name."""
    if form is None or isinstance(form, Debezium):
        return form
    if form == "debezium":
        return Debezium()
    error = ValueError(
        f"a format of lines is debezium or none, {form!r} is neither{did_you_mean(form, ('debezium',))}"
    )
    error.add_note("Parquet, Arrow and JSON lines are told by the endings of names: leave format out.")
    raise error


class _Times(msgspec.Struct):
    ts_us: int | None = None
    ts_ms: int | None = None

    def ticks(self) -> int | None:
        """Microseconds, as exactly as they are said."""
        if self.ts_us is not None:
            return self.ts_us
        return None if self.ts_ms is None else self.ts_ms * 1000


_NULL = msgspec.Raw(b"null")


class _Source(_Times):
    snapshot: str | bool | None = None


class _Envelope(_Times):
    """What is looked at of an envelope; the schema beside one is not."""

    op: str | None = None
    before: msgspec.Raw = _NULL
    after: msgspec.Raw = _NULL
    source: _Source | None = None
    payload: msgspec.Raw = _NULL


_envelopes = msgspec.json.Decoder(_Envelope)


def _change(value: bytes) -> tuple[bytes, str, int] | None:
    """The row of an envelope as text, its op and its time; None where it is passed over."""
    envelope = _envelopes.decode(value)
    if envelope.op is None and _is_said(envelope.payload):
        value = bytes(envelope.payload)
        envelope = _envelopes.decode(value)
    op = envelope.op
    if op is None:
        if _is_notice(msgspec.json.decode(value)):
            return None
        raise ValueError("an envelope has an op, this has none")
    if op == MESSAGE:
        return None
    if op == TRUNCATE:
        raise ValueError("a truncate ends rows that it does not name, so what is left is not known")
    if op not in IMAGES:
        raise ValueError(f"an op is one of {', '.join((*IMAGES, MESSAGE, TRUNCATE))}, not {op!r}")
    row = getattr(envelope, IMAGES[op])
    if not _is_said(row):
        raise ValueError(f"an envelope of op {op!r} has the row in {IMAGES[op]!r}, this one has none")
    if op == READ and envelope.source is not None and envelope.source.snapshot == INCREMENTAL:
        op = INCREMENTAL
    return bytes(row), op, _time(envelope)


def _is_said(part: msgspec.Raw) -> bool:
    return bytes(part) != b"null"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = int((datetime(1, 1, 2, tzinfo=UTC) - _EPOCH).total_seconds()) * 1_000_000
_LAST = int((datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH).total_seconds()) * 1_000_000
"""Between these a time has a date in every zone."""


def _time(envelope: _Envelope) -> int:
    """The time of the commit, or of the envelope where that is not said."""
    time = None if envelope.source is None else envelope.source.ticks()
    if time is None:
        time = envelope.ticks()
    if time is None:
        raise ValueError(
            "an envelope has a time (source.ts_us, source.ts_ms, ts_us, ts_ms), this one has none"
        )
    if not _FIRST <= time < _LAST:
        raise ValueError(f"a time is in the years 1 to 9999, {time} µs since 1970 is not")
    return time


_TICKS = {"ts_ms", "ts_us", "ts_ns"}
_SCHEMA_CHANGE = {"ddl", "tableChanges", "databaseName"}


def _is_notice(said: dict[str, Any]) -> bool:
    """A tombstone beside its schema, a begin or end of a transaction, a heartbeat, a change of a schema."""
    if said.keys() == {"schema", "payload"}:
        return said["payload"] is None
    if "ts_ms" in said and said.keys() <= _TICKS:
        return True
    if said.get("before") is not None or said.get("after") is not None:
        return False
    return said.get("status") in ("BEGIN", "END") or not _SCHEMA_CHANGE.isdisjoint(said)
