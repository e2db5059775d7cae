"""Rows of a layout as elements, with who said them; rows that do not fit are refused, the others are used."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anabranch.model.batch import KINDS, Batch, Kind
from anabranch.model.clock_columns import clock_of, no_ticks, ticks_of
from anabranch.model.rows import rows_without_columns
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.model.validity import Rule
from anabranch.rows.change_words import IGNORE, WORDS, folded
from anabranch.rows.layout import SINGLE, Layout
from anabranch.rows.refusal import Refusal
from anabranch.rows.text import broken_text, plain, text_of, without

_INSERT, _ADJUST, _ATTACH = int(Kind.INSERT), int(Kind.ADJUST), int(Kind.ATTACH)


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
    in_order: bool = False
    """The sequences ascend."""


def read_rows(layout: Layout, rows: pa.RecordBatch, place: Place) -> Read:
    """The elements that rows stand for, and those that stand for none."""
    return _Reading(layout, rows, place).result()


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
            old_end = np.where(kind == _ADJUST, self._ticks(layout.old_end, FOREVER), 0)
        elif layout.kind is not None and (kind == _ADJUST).any():
            self._refuse(kind == _ADJUST, "an adjust names the end that it changes, and no column is old_end")
        replica, replicas = self._names(layout.replica, SINGLE)
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
        if wrong or self.ignored.any():
            keep = ~self.ignored
            keep[wrong] = False
            batch, replica, channel, sequence = batch.take(keep), replica[keep], channel[keep], sequence[keep]
        in_order = layout.sequence is None or bool((np.diff(sequence) >= 0).all())
        return Read(batch, replicas, replica, channels, channel, sequence, refused, in_order)

    def _kinds(self) -> NDArray[np.int8]:
        if self.layout.kind is None:
            return np.zeros(self.rows.num_rows, np.int8)
        kind = self._codes(self.layout.kind, {word: n for n, word in enumerate(KINDS)}, _INSERT)
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
        is_change = (code >= 0) & (kinds == _INSERT)
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
            self._refuse(absent & (kind <= _ADJUST), f"{what}, column {name!r} is null")
            start = np.where(absent & (kind == _ATTACH), BEGINNING, start)
        if self.layout.key is not None:
            at_the_end = (start == FOREVER) & (kind == _INSERT)
            self._refuse(at_the_end, "a change commits before the end of time")
        return start

    def _ends(self, kind: NDArray[np.int8], start: NDArray[np.int64]) -> NDArray[np.int64]:
        layout = self.layout
        if layout.key is not None:
            return np.where(kind == _INSERT, FOREVER, 0)
        if layout.end is not None:
            return np.where(kind <= _ADJUST, self._ticks(layout.end, FOREVER), 0)
        lasts = layout.ticks(layout.duration, self.rows.schema, "duration") or 1
        if start.max(initial=BEGINNING) > FOREVER - lasts:
            lasting = layout.length(lasts, self.rows.schema)
            too_late = (start > FOREVER - lasts) & (kind <= _ADJUST)
            self._refuse(too_late, f"an event of duration {lasting} ends before time does")
        return start + lasts if layout.kind is None else np.where(kind <= _ADJUST, start + lasts, 0)

    def _ticks(self, name: str, missing: int) -> NDArray[np.int64]:
        column = self.rows.column(name)
        clock_of(column.type, name)
        wrong = no_ticks(column)
        if wrong is not None:
            self._refuse(wrong, f"a time is a microsecond of 64 bits, that of column {name!r} is none")
        column = ticks_of(column, exact=False)
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
        if pa.types.is_primitive(column.type):
            return
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
        raw = text_of({name: plain(self.given.column(name)[row]) for name in self.given.schema.names})
        return Refusal(Rule.MALFORMED.value, self.wrong[row], who, self.place.of(row), raw)
