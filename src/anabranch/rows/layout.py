"""What the columns of plain rows mean: where the payload is, where a lifetime starts and ends, who says it.

A row is an event unless the ``kind`` column says otherwise: it may be an adjust, a stable at its start, or an
attach (whose start is the guarantee, null for everything) or detach of its replica. Times are timestamps
(microsecond ticks), dates (day ticks) or integers; a null end is infinite.

With a key, a row is a change of the row of a table: ``kind`` says what happened to it, ``start`` when that
was committed (see `change_words.py` for the words, `kernels/changes.py` for the columns that come of it).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pyarrow as pa

from anabranch.model.batch import KINDS
from anabranch.model.clock import Clock, check_unit, in_ticks, length_text
from anabranch.model.clock_columns import clock_of
from anabranch.model.schema import SchemaError, check_field_names, sort_of
from anabranch.model.spelling import did_you_mean
from anabranch.rows.change_words import WORDS

PAYLOAD_COLUMN = "payload column "
"""What the settings of the columns of a payload begin with."""
SINGLE = "stream"
"""The replica of rows that no column tells apart."""

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
                error = SchemaError(
                    f"{role} is column {name!r}, and there is none{did_you_mean(name, names)}"
                )
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
        said: dict[str, Any] = {"start": f"{self.start!r} ({self.clock(schema).word})"}
        if self.key is None:
            lasts = self.ticks(self.duration, schema, "duration") or 1
            said |= {"end": repr(self.end), "duration": None if self.end else self.length(lasts, schema)}
        else:
            said = {"time": said["start"]}
        said |= {"replica": repr(self.replica), "channel": repr(self.channel)}
        if self.identity is None:
            said["payload"] = self.payload
        said |= {f"{PAYLOAD_COLUMN}{name!r}": sort_of(schema.field(name).type) for name in names}
        return {name: str(value) for name, value in said.items()}

    def reading(self) -> dict[str, str]:
        """What rows mean beside when and where their events are, as text."""
        words = ", ".join(f"{word} = {op}" for word, op in sorted(self.ops.items()))
        return {
            "kind": repr(self.kind),
            "old_end": repr(self.old_end),
            "sequence": repr(self.sequence),
            "identity": str(self.identity),
            "key": str(self.key),
            "words": words,
        }

    def clock(self, schema: pa.Schema) -> Clock:
        """What a tick is."""
        return clock_of(schema.field(self.start).type, self.start)

    def ticks(self, span: int | timedelta | None, schema: pa.Schema, what: str) -> int | None:
        """A span in ticks of the clock of the rows; a number is one already."""
        return None if span is None else in_ticks(span, self.clock(schema), what)

    def check_unit(self, span: int | timedelta | None, schema: pa.Schema, what: str) -> None:
        """Raise where people give a number and times are none."""
        if span is not None:
            check_unit(span, self.clock(schema), what)

    def length(self, ticks: int, schema: pa.Schema) -> str:
        """So many ticks as people read them."""
        return length_text(ticks, self.clock(schema))


def names_of(value: str | Iterable[str] | None) -> tuple[str, ...] | None:
    """One name or several, as a tuple."""
    return None if value is None else (value,) if isinstance(value, str) else tuple(value)
