"""What the columns of plain rows mean: where the payload is, where a lifetime starts and ends, who says it.

A row is an event unless the ``kind`` column says otherwise: it may be an adjust, a stable at its start, or an
attach (whose start is the guarantee, null for everything) or detach of its replica. Times are timestamps
(microsecond ticks), dates (day ticks) or integers; a null end is infinite. A row that does not fit is
refused, with a reason and itself as text; the others are used.

With a key, a row is a change of the row of a table: ``kind`` says what happened to it, ``start`` when that
was committed (see `ops.py` for the words, `kernels/changes.py` for the columns that come of it).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anabranch.engines.spark.broken_text import broken_text, without
from anabranch.engines.spark.ops import IGNORE, WORDS, folded
from anabranch.engines.spark.refusal import Refusal
from anabranch.model.arrow import times
from anabranch.model.batch import KINDS, Batch, Kind
from anabranch.model.rows import rows_without_columns
from anabranch.model.schema import SchemaError, check_field_names, sort_of
from anabranch.model.span import span_text
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.model.validity import Rule

ALONE = "stream"
"""The replica of rows that no column tells apart."""

_TICKS = {
    "instant": timedelta(microseconds=1),
    "local time": timedelta(microseconds=1),
    "day": timedelta(days=1),
    "number": None,
}
"""How long a tick of each clock is."""
_TOGETHER = (("replica", "channel"), ("start", "sequence"), ("time", "sequence"))
"""Roles that one column may have: a replica is one channel, and rows may be in the order of their times."""
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)


@dataclass(frozen=True, slots=True)
class Layout:
    """What each column of some rows is."""

    start: str
    end: str | None = None
    old_end: str | None = None
    duration: int | timedelta | None = None
    kind: str | None = None
    replica: str | None = None
    channel: str | None = None
    sequence: str | None = None
    payload: tuple[str, ...] | None = None
    """None: every column that is nothing else."""
    identity: tuple[str, ...] | None = None
    """What tells events apart; None: the whole payload."""
    disorder: int | timedelta | None = None
    """A row comes at most so much after rows that start later; None: stables are in the data."""
    key: tuple[str, ...] | None = None
    """What names a row of the table that the rows are changes of; None: rows are elements."""
    ops: Mapping[str, str] = field(default_factory=dict)
    """What the words of changes mean."""

    def __post_init__(self) -> None:
        if self.end is not None and self.duration is not None:
            error = ValueError(
                f"an event ends by a column or after a duration, not both ({self.end!r}, {self.duration!r})"
            )
            error.add_note("Leave one of them out; without either, an event is a point.")
            raise error
        if self.sequence is not None and self.channel is None:
            object.__setattr__(self, "channel", self.replica)
        self._check_roles()
        for what, value in (("duration", self.duration), ("disorder", self.disorder)):
            if value is not None and (value.days if isinstance(value, timedelta) else value) < 0:
                raise ValueError(f"{what} is not negative, {value} is")
        if self.duration is not None and not self.duration:
            error = ValueError(f"an event lasts longer than nothing, its duration is {self.duration}")
            error.add_note("Leave the duration out: a point lasts one tick.")
            raise error

    def _check_roles(self) -> None:
        """Raise where a column has two roles that no values fit both."""
        roles = list(self.roles().items())
        for n, (role, name) in enumerate(roles):
            for other, same in roles[n + 1 :]:
                if name == same and (role, other) not in _TOGETHER:
                    error = ValueError(f"column {name!r} is {role} and {other}, and no column says both")
                    error.add_note(f"Name another column as {other}, or leave it out.")
                    raise error

    def roles(self) -> dict[str, str]:
        """The columns that are not payload, and what they are."""
        roles = {
            "start" if self.key is None else "time": self.start,
            "end": self.end,
            "old_end": self.old_end,
            "kind" if self.key is None else "op": self.kind,
            "replica": self.replica,
            "channel": self.channel,
            "sequence": self.sequence,
        }
        return {role: name for role, name in roles.items() if name is not None}

    def payload_of(self, names: Sequence[str]) -> list[str]:
        """Those of the columns that are payload."""
        if self.payload is not None:
            return list(self.payload)
        others = set(self.roles().values())
        return [name for name in names if name not in others]

    def check(self, schema: pa.Schema) -> None:
        """Raise where rows of this schema have not the columns that the layout names, or not their types."""
        names = schema.names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            error = SchemaError(f"two columns are called {twice[0]!r}")
            error.add_note("A name stands for one column; rename the others.")
            raise error
        wanted = [*self.roles().items(), *(("payload", n) for n in self.payload or ())]
        wanted += [("identity", name) for name in self.identity or ()]
        wanted += [("key", name) for name in self.key or ()]
        for role, name in wanted:
            if name not in names:
                error = SchemaError(f"{role} is column {name!r}, and there is none")
                error.add_note(f"The columns are {', '.join(map(repr, names))}.")
                raise error
        for name in self.identity or ():
            if name not in self.payload_of(names):
                raise SchemaError(f"what tells events apart is payload, and column {name!r} is not")
        for name in self.key or ():
            if name not in self.payload_of(names):
                error = SchemaError(f"the key of a row is part of it, and column {name!r} is no payload")
                error.add_note("Name it in payload, and let it be nothing else.")
                raise error
        clock_of(schema.field(self.start).type, self.start)
        for role in ("end", "old_end"):
            column = self.roles().get(role)
            if column and clock_of(schema.field(column).type, column) != self.clock(schema):
                first, other = schema.field(self.start).type, schema.field(column).type
                error = SchemaError(
                    f"column {self.start!r} holds {first} and column {column!r} holds {other}"
                )
                error.add_note("The times of a stream are on one clock; cast one of them.")
                raise error
        for name in self.payload_of(names):
            check_field_names(schema.field(name).type, f"column {name!r}")
        self._check_words(schema)
        for what, value in (("duration", self.duration), ("disorder", self.disorder)):
            self.check_unit(value, schema, what)
            self.ticks(value, schema, what)

    def _check_words(self, schema: pa.Schema) -> None:
        """Raise where the column of kinds or ops holds no words."""
        if self.kind is None:
            return
        held = schema.field(self.kind).type
        words = held.value_type if pa.types.is_dictionary(held) else held
        if any(is_text(words) for is_text in _TEXTS) or (self.key and pa.types.is_integer(words)):
            return
        role = "kind" if self.key is None else "op"
        error = SchemaError(f"{role} is a word, and column {self.kind!r} holds {held}")
        error.add_note(
            f"Name the column that says {', '.join(KINDS)}; without any, every row is an insert."
            if self.key is None
            else f"Name the column that says {', '.join(WORDS)}, or give what it says in ops."
        )
        raise error

    def settings(self, schema: pa.Schema) -> dict[str, str]:
        """What state depends on, as text: who says which events, told apart by what, from when to when.

        Columns may be added to a payload that is all columns, as null is no value; others may not change.
        """
        names = self.identity or self.payload_of(schema.names)
        said: dict[str, Any] = {"start": f"{self.start!r} ({self.clock(schema)})"}
        if self.key is None:
            lasts = self.ticks(self.duration, schema, "duration") or 1
            said |= {"end": self.end, "duration": None if self.end else self.length(lasts, schema)}
        else:
            said = {"time": said["start"]}
        said |= {"replica": self.replica, "channel": self.channel}
        if self.identity is None:
            said["payload"] = self.payload
        said |= {f"payload column {name!r}": sort_of(schema.field(name).type) for name in names}
        return {name: str(value) for name, value in said.items()}

    def clock(self, schema: pa.Schema) -> str:
        """What a tick is: an instant, a local time, a day or a number."""
        return clock_of(schema.field(self.start).type, self.start)

    def ticks(self, span: int | timedelta | None, schema: pa.Schema, what: str) -> int | None:
        """A span in ticks of the clock of the rows; a number is one already."""
        clock = self.clock(schema)
        if span is None or isinstance(span, int):
            return span
        unit = _TICKS[clock]
        if unit is None or span % unit:
            error = ValueError(f"{what} is {span_text(span)}, and column {self.start!r} counts {clock}s")
            error.add_note("Give an int of ticks." if unit is None else "Give whole days.")
            raise error
        return span // unit

    def check_unit(self, span: int | timedelta | None, schema: pa.Schema, what: str) -> None:
        """Raise where people give a number and times are none."""
        clock = self.clock(schema)
        if span and isinstance(span, int) and clock != "number":
            error = ValueError(f"{what} is {span} without a unit, and column {self.start!r} holds {clock}s")
            error.add_note(f"Write '{span} {'days' if clock == 'day' else 'seconds'}', if that is meant.")
            raise error

    def length(self, ticks: int, schema: pa.Schema) -> str:
        """So many ticks as people read them."""
        unit = _TICKS[self.clock(schema)]
        try:
            return str(ticks) if unit is None else span_text(ticks * unit)
        except OverflowError:
            return str(ticks)

    def read(self, rows: pa.RecordBatch, place: "Place") -> "Read":
        """The elements that rows stand for, and those that stand for none."""
        reading = _Reading(self, rows, place)
        return reading.result()


@dataclass(frozen=True, slots=True)
class Place:
    """Where rows come from, for people to find them."""

    source: str
    first: int = 0
    """The number of the first row, as people count."""
    sequence: int = 0
    """The number of the first row in the order of its channel."""
    channel: str = ""
    """The channel of rows that do not say it themselves."""

    def sequences(self, count: int) -> NDArray[np.int64]:
        """The number of each row in the order of its channel."""
        return np.arange(self.sequence, self.sequence + count)

    def of(self, row: int) -> str:
        """The place of one row."""
        return f"{self.source} row {self.first + row}"


@dataclass(frozen=True)
class Read:
    """Elements with who said them, and what was refused."""

    batch: Batch
    replicas: list[str]
    replica: NDArray[np.int64]
    channels: list[str]
    channel: NDArray[np.int64]
    sequence: NDArray[np.int64]
    refused: list[Refusal]


class _Reading:
    """One record batch being read; ``wrong`` collects the first reason why each row does not fit."""

    def __init__(self, layout: Layout, rows: pa.RecordBatch, place: Place) -> None:
        self.layout, self.given, self.rows, self.place = layout, rows, rows, place
        self.wrong: dict[int, str] = {}
        self.ignored = np.zeros(rows.num_rows, np.bool_)
        for name in dict.fromkeys([*layout.roles().values(), *layout.payload_of(rows.schema.names)]):
            self._refuse_text(name)

    def result(self) -> Read:
        layout, rows = self.layout, self.rows
        count = rows.num_rows
        old_end = np.zeros(count, np.int64)
        if layout.key is None:
            kind = self._kinds()
        else:
            kind, old_end = self._ops()
        start = self._starts(kind)
        end = self._ends(kind, start)
        if layout.old_end is not None:
            old_end = np.where(kind == Kind.ADJUST, self._ticks(layout.old_end, FOREVER), 0)
        elif (kind == Kind.ADJUST).any():
            self._refuse(
                kind == Kind.ADJUST, "an adjust names the end that it changes, and no column is old_end"
            )
        replica, replicas = self._names(layout.replica, ALONE)
        channel, channels = self._names(layout.channel, self.place.channel)
        sequence = self.place.sequences(count)
        if layout.sequence is not None:
            sequence = self._ticks(layout.sequence, 0)
            self._refuse_nulls(layout.sequence, "a row has a place in its channel")
        names = layout.payload_of(rows.schema.names)
        payload = rows.select(names) if names else rows_without_columns(count)
        batch = Batch(kind, start, end, old_end, payload)
        wrong = [row for row in sorted(self.wrong) if not self.ignored[row]]
        refused = [self._refusal(row, replicas, replica) for row in wrong]
        keep = ~self.ignored
        keep[wrong] = False
        if not keep.all():
            batch, replica, channel, sequence = batch.take(keep), replica[keep], channel[keep], sequence[keep]
        return Read(batch, replicas, replica, channels, channel, sequence, refused)

    def _kinds(self) -> NDArray[np.int8]:
        if self.layout.kind is None:
            return np.zeros(self.rows.num_rows, np.int8)
        kind = self._codes(self.layout.kind, {word: n for n, word in enumerate(KINDS)}, int(Kind.INSERT))
        for row in np.flatnonzero(kind < 0).tolist():
            word = self.rows.column(self.layout.kind)[row].as_py()
            self.wrong.setdefault(row, f"kind is one of {', '.join(KINDS)} or null, this one is {word!r}")
        return np.where(kind < 0, 0, kind).astype(np.int8)

    def _ops(self) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
        """The kind of each row, and what happens to the row of the table if it is a change."""
        layout, words = self.layout, (*WORDS, IGNORE)
        assert layout.kind is not None, "a change says what happened"
        codes = {spelled: words.index(word) for spelled, word in layout.ops.items()}
        code = self._codes(layout.kind, codes, -1)
        self.ignored = code == words.index(IGNORE)
        for row in np.flatnonzero(code < 0).tolist():
            word = self.rows.column(layout.kind)[row].as_py()
            self.wrong.setdefault(row, f"an op is {', '.join(WORDS)}, and {word!r} is not known to be any")
        kinds, ops = np.array([*WORDS.values(), WORDS["detach"]], np.int64)[code].T
        is_change = (code >= 0) & (kinds == Kind.INSERT)
        for name in layout.key or ():
            column = self.rows.column(name)
            if column.null_count:
                absent = ~column.is_valid().to_numpy(zero_copy_only=False)
                self._refuse(absent & is_change, f"a change names its row, key column {name!r} is null")
        return kinds.astype(np.int8), ops

    def _codes(self, name: str, codes: Mapping[str, int], null: int) -> NDArray[np.int64]:
        """The code of each word of a column, -1 where it has none."""
        column = self.rows.column(name)
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        known = [codes.get(folded(word), -1) for word in encoded.dictionary.to_pylist()]
        places = encoded.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)
        return np.array([*known, null], np.int64)[places]

    def _starts(self, kind: NDArray[np.int8]) -> NDArray[np.int64]:
        name = self.layout.start
        start = self._ticks(name, FOREVER)
        if self.rows.column(name).null_count:
            absent = ~self.rows.column(name).is_valid().to_numpy(zero_copy_only=False)
            what = "an event has a start" if self.layout.key is None else "a change has a commit time"
            self._refuse(absent & (kind <= Kind.ADJUST), f"{what}, column {name!r} is null")
            start = np.where(absent & (kind == Kind.ATTACH), BEGINNING, start)
        if self.layout.key is not None:
            at_the_end = (start == FOREVER) & (kind == Kind.INSERT)
            self._refuse(at_the_end, "a change commits before the end of time")
        return start

    def _ends(self, kind: NDArray[np.int8], start: NDArray[np.int64]) -> NDArray[np.int64]:
        layout = self.layout
        if layout.key is not None:
            return np.where(kind == Kind.INSERT, FOREVER, 0)
        if layout.end is not None:
            return np.where(kind <= Kind.ADJUST, self._ticks(layout.end, FOREVER), 0)
        lasts = layout.ticks(layout.duration, self.rows.schema, "duration") or 1
        too_late = (start > FOREVER - lasts) & (kind <= Kind.ADJUST)
        if too_late.any():
            lasting = layout.length(lasts, self.rows.schema)
            self._refuse(too_late, f"an event of duration {lasting} ends before time does")
        with np.errstate(over="ignore"):
            return np.where(kind <= Kind.ADJUST, start + lasts, 0)

    def _ticks(self, name: str, missing: int) -> NDArray[np.int64]:
        column = self.rows.column(name)
        clock_of(column.type, name)
        if pa.types.is_date(column.type):
            column = column.cast(pa.date32()).cast(pa.int32())
        elif pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
        column = column.cast(pa.int64())
        return np.asarray(column.fill_null(missing) if column.null_count else column)

    def _names(self, name: str | None, otherwise: str) -> tuple[NDArray[np.int64], list[str]]:
        if name is None:
            return np.zeros(self.rows.num_rows, np.int64), [otherwise]
        self._refuse_nulls(name, "a row says whose it is")
        column = self.rows.column(name)
        if not pa.types.is_dictionary(column.type):
            column = pc.dictionary_encode(column.cast(pa.string()))
        codes = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return codes.astype(np.int64), [str(word) for word in column.dictionary.to_pylist()]

    def _refuse_text(self, name: str) -> None:
        column = self.rows.column(name)
        broken = broken_text(column)
        if broken is not None:
            self._refuse(broken, f"text is UTF-8, and in column {name!r} it is not")
            number = self.rows.schema.get_field_index(name)
            self.rows = self.rows.set_column(number, self.rows.schema.field(number), without(column, broken))

    def _refuse_nulls(self, name: str, rule: str) -> None:
        column = self.rows.column(name)
        if column.null_count:
            absent = ~column.is_valid().to_numpy(zero_copy_only=False)
            self._refuse(absent, f"{rule}, column {name!r} is null")

    def _refuse(self, rows: NDArray[np.bool_], reason: str) -> None:
        for row in np.flatnonzero(rows).tolist():
            self.wrong.setdefault(row, reason)

    def _refusal(self, row: int, replicas: list[str], replica: NDArray[np.int64]) -> Refusal:
        column = self.layout.replica
        known = column is None or self.rows.column(column)[row].is_valid
        who = replicas[replica[row]] if known else ""
        raw = text_of({name: _plain(self.given.column(name)[row]) for name in self.given.schema.names})
        return Refusal(Rule.MALFORMED.value, self.wrong[row], who, self.place.of(row), raw)


def clock_of(kind: pa.DataType, name: str) -> str:
    """What a tick is in a column of this type."""
    if pa.types.is_timestamp(kind):
        return "local time" if kind.tz is None else "instant"
    if pa.types.is_date(kind):
        return "day"
    if pa.types.is_integer(kind):
        return "number"
    error = SchemaError(f"a time is a timestamp, a date or an integer, column {name!r} holds {kind}")
    error.add_note("Cast it, for example with to_timestamp().")
    raise error


def on_clock(ticks: NDArray[np.int64], null: NDArray[np.bool_], kind: pa.DataType) -> Any:
    """Ticks in the type of the clock they came from."""
    if pa.types.is_timestamp(kind):
        return times(ticks, null, kind)
    column = pa.array(ticks, mask=null if null.any() else None)
    if pa.types.is_date(kind):
        return column.cast(pa.int32()).cast(pa.date32())
    return column


def _plain(value: Any) -> Any:
    """A value as Python has it; a time that Python has none for is ticks, and text is mended to be UTF-8."""
    try:
        return value.as_py()
    except UnicodeDecodeError as reason:
        return reason.object.decode(errors="replace")
    except (OverflowError, ValueError):
        return getattr(value, "value", f"a {value.type} that is out of range")


def text_of(row: dict[str, Any]) -> str:
    """A row as text, for people; values that JSON has no type for are shown as they print."""
    return msgspec.json.encode(row, enc_hook=str).decode()


def names_of(value: str | Iterable[str] | None) -> tuple[str, ...] | None:
    """One name or several, as a tuple."""
    return None if value is None else (value,) if isinstance(value, str) else tuple(value)
