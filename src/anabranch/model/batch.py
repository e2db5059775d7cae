"""Elements in columns, in arrival order.

A batch is what operators take and give: int8 kinds, int64 times, and the payload as an Arrow record batch
with one row per element (the row of a stable is null). ``start`` holds the time of a stable and the guarantee
of an attach. A batch of one element is legal; an empty one too. Batches share buffers with the Arrow data
they came from wherever types allow.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.model.elements import Adjust, Attach, Control, Detach, Element, Insert, Stable, Tagged
from anabranch.model.identity import Words, identities
from anabranch.model.origin import Origin, joined
from anabranch.model.rows import nulls, rows_of, rows_without_columns, stacked, take_rows
from anabranch.model.schema import SchemaError


class Kind(IntEnum):
    """What an element is, as a number in a column."""

    INSERT = 0
    ADJUST = 1
    STABLE = 2
    ATTACH = 3
    DETACH = 4


_COLUMNS = ("kind", "start", "end", "old_end")
KINDS = tuple(kind.name.lower() for kind in Kind)


@dataclass(frozen=True)
class Batch:
    """Elements in arrival order; equal length columns."""

    kind: NDArray[np.int8]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    old_end: NDArray[np.int64]
    payload: pa.RecordBatch
    input: NDArray[np.int32] | None = None
    inputs: tuple[str, ...] = field(default=())
    origin: Origin | None = None

    def __post_init__(self) -> None:
        columns = self.__dict__
        for name in _COLUMNS:
            column = columns[name]
            if column.flags.writeable or not column.flags.c_contiguous:
                columns[name] = _read_only(column)
        length = len(self.kind)
        assert length == len(self.start) == len(self.end) == len(self.old_end) == self.payload.num_rows, (
            f"columns of one batch have one length, not {sorted(set(self._lengths()))}"
        )
        assert self.input is None or len(self.input) == len(self.kind), (
            "every element has an input or none has"
        )
        assert self.origin is None or len(self.origin) == len(self.kind), (
            "every element has an origin or none has"
        )

    def _lengths(self) -> list[int]:
        return [len(self.kind), len(self.start), len(self.end), len(self.old_end), self.payload.num_rows]

    def __len__(self) -> int:
        return len(self.kind)

    def __iter__(self) -> Iterator[Element | Control | Tagged]:
        """The elements as objects, with their inputs where the batch has several."""
        return self.objects() if self.input is None else self.tagged()

    @cached_property
    def identities(self) -> Words:
        """The identity of each row's payload."""
        return identities(self.payload)

    def __getitem__(self, rows: Any) -> "Batch":
        """Some of the elements, sharing the columns; `element` gives one."""
        if not isinstance(rows, slice):
            error = TypeError(f"a part of a batch is a slice of it, not {rows!r}")
            error.add_note("Batch.element(row) is one element, list(batch) is all of them.")
            raise error
        begin, stop, step = rows.indices(len(self))
        if step != 1:
            return self.take(np.arange(begin, stop, step))
        part = Batch(
            self.kind[rows],
            self.start[rows],
            self.end[rows],
            self.old_end[rows],
            self.payload.slice(begin, max(stop - begin, 0)),
            None if self.input is None else self.input[rows],
            self.inputs,
            None if self.origin is None else self.origin.take(rows),
        )
        return self._as_hashed(part, rows)

    def take(self, rows: NDArray[Any]) -> "Batch":
        """The elements at these places (or where a mask is true), in that order."""
        if rows.dtype == np.bool_:
            rows = np.flatnonzero(rows)
        part = Batch(
            self.kind[rows],
            self.start[rows],
            self.end[rows],
            self.old_end[rows],
            take_rows(self.payload, rows),
            None if self.input is None else self.input[rows],
            self.inputs,
            None if self.origin is None else self.origin.take(rows),
        )
        return self._as_hashed(part, rows)

    def told_apart_by(self, columns: Sequence[str] | None) -> "Batch":
        """The same elements, whose identities are those of these payload columns alone (None: of all)."""
        if columns is None or self.__dict__.get("by") == tuple(columns):
            return self
        missing = [name for name in columns if name not in self.payload.schema.names]
        if missing and self.payload.num_columns:
            error = SchemaError(
                f"the identity of an event needs column {missing[0]!r}, which the payload lacks"
            )
            error.add_note(f"Its columns are {', '.join(map(repr, self.payload.schema.names))}.")
            raise error
        named = tuple(name for name in columns if name in self.payload.schema.names)
        return self.identified(identities(self.payload.select(list(named))), tuple(columns))

    def identified(self, words: Words, columns: tuple[str, ...] | None = None) -> "Batch":
        """The same elements with identities that are known already, those of these columns."""
        same = replace(self)
        same.__dict__["identities"], same.__dict__["by"] = words, columns
        return same

    def with_payload(self, payload: pa.RecordBatch) -> "Batch":
        """The same elements with the same payloads in another form."""
        return self._with(payload=payload)

    def with_new_payload(self, payload: pa.RecordBatch) -> "Batch":
        """The same elements with other payloads, which have other identities."""
        same = self._copied("payload", payload)
        same.__dict__.pop("identities", None)
        same.__dict__.pop("by", None)
        return same

    def with_starts(self, start: NDArray[np.int64]) -> "Batch":
        """The same elements at other starts."""
        return self._with(start=start)

    def with_times(
        self,
        kind: NDArray[np.int8],
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        old_end: NDArray[np.int64],
    ) -> "Batch":
        """Other elements about the same payloads, row by row."""
        return self._with(kind=kind, start=start, end=end, old_end=old_end)

    def with_origin(self, origin: Origin | None) -> "Batch":
        """The same elements, from these rows of their channels."""
        return self._copied("origin", origin)

    def _copied(self, name: str, column: Any) -> "Batch":
        """The same batch with one column replaced by another of its length; what is checked stays so."""
        assert column is None or len(column) == len(self), "columns of one batch have one length"
        same = object.__new__(Batch)
        same.__dict__.update(self.__dict__)
        same.__dict__[name] = column
        return same

    def _with(self, **columns: Any) -> "Batch":
        return self._as_hashed(replace(self, **columns), slice(None))

    def _as_hashed(self, part: "Batch", rows: slice | NDArray[Any]) -> "Batch":
        """A part with the identities of its rows, where they have been computed."""
        if "identities" in self.__dict__:
            part.__dict__["identities"], part.__dict__["by"] = self.identities[rows], self.__dict__.get("by")
        return part

    def plain(self) -> "Batch":
        """The same elements by themselves: without origins, and without the identities of a part of them."""
        if self.origin is None and self.__dict__.get("by") is None:
            return self
        same = Batch(self.kind, self.start, self.end, self.old_end, self.payload, self.input, self.inputs)
        return same if self.__dict__.get("by") is not None else self._as_hashed(same, slice(None))

    def rows_by_input(self) -> dict[str, NDArray[np.int64]]:
        """Where in the batch each input speaks."""
        if self.input is None:
            return {}
        rows = {name: np.flatnonzero(self.input == code) for code, name in enumerate(self.inputs)}
        return {name: places for name, places in rows.items() if len(places)}

    def untagged(self) -> "Batch":
        """The same elements without their inputs."""
        return replace(self, input=None, inputs=())

    def split(self) -> dict[str, "Batch"]:
        """What each input said, in order, without its name."""
        return {name: self.take(rows).untagged() for name, rows in self.rows_by_input().items()}

    def element(self, row: int) -> Element | Control:
        """One element as an object."""
        return next(iter(self[row : row + 1].objects()))

    def elements(self) -> Iterator[Element]:
        """The elements as objects, without their inputs; attach and detach are not elements."""
        for item in self.objects():
            assert not isinstance(item, Attach | Detach), "a batch of one input has no attach or detach"
            yield item

    def tagged(self) -> Iterator[Tagged]:
        """The elements as objects with the inputs that sent them."""
        assert self.input is not None, "elements of a single input are not tagged"
        for code, item in zip(self.input.tolist(), self.objects(), strict=True):
            yield Tagged(self.inputs[code], item)

    def objects(self) -> Iterator[Element | Control]:
        """The elements as objects, without their inputs, and every attach and detach."""
        rows = self.payload.to_pylist() if self.payload.num_columns else [{}] * len(self)
        columns = zip(
            self.kind.tolist(),
            self.start.tolist(),
            self.end.tolist(),
            self.old_end.tolist(),
            rows,
            strict=True,
        )
        for kind, start, end, old_end, row in columns:
            payload = {name: value for name, value in row.items() if value is not None}
            match kind:
                case Kind.INSERT:
                    yield Insert(payload, start, end)
                case Kind.ADJUST:
                    yield Adjust(payload, start, old_end, end)
                case Kind.STABLE:
                    yield Stable(start)
                case Kind.ATTACH:
                    yield Attach(start)
                case _:
                    yield Detach()

    @classmethod
    def of(cls, items: Iterable[Element | Tagged], *, schema: pa.Schema | None = None) -> "Batch":
        """A batch of element objects, tagged or not; payload types are inferred where no schema is given.

        >>> batch = Batch.of([Insert({"sensor": "a", "level": 3}, 5, 9), Stable(5)])
        >>> batch.payload.schema.names, list(batch.elements())[1]
        (['sensor', 'level'], Stable(time=5))
        """
        rows = list(items)
        tagged = [row for row in rows if isinstance(row, Tagged)]
        if tagged and len(tagged) != len(rows):
            raise SchemaError("either every element of a batch is tagged with its input or none is")
        names = {name: code for code, name in enumerate(dict.fromkeys(row.input for row in tagged))}
        elements = [row.element if isinstance(row, Tagged) else row for row in rows]
        times = np.array([_times(element) for element in elements], np.int64).reshape(-1, 4)
        kind, start, end, old_end = np.ascontiguousarray(times.T)
        return cls(
            kind.astype(np.int8),
            start,
            end,
            old_end,
            rows_of([e.payload if isinstance(e, Insert | Adjust) else {} for e in elements], schema),
            np.array([names[row.input] for row in tagged], np.int32) if tagged else None,
            tuple(names),
        )

    @classmethod
    def stable(cls, time: int, schema: pa.Schema | None = None) -> "Batch":
        """A batch of one stable, of a stream whose payloads have this schema."""
        nothing = np.zeros(1, np.int64)
        payload = rows_without_columns(1) if schema is None else nulls(1, schema)
        return cls(np.array([Kind.STABLE], np.int8), np.array([time], np.int64), nothing, nothing, payload)

    @classmethod
    def from_arrow(cls, data: Any) -> "Batch":
        """One batch from anything with the Arrow stream or array interface (see `model.arrow`)."""
        from anabranch.model.arrow import batches

        return concat(list(batches(data)))

    def to_arrow(self, *, unit: pa.DataType | None = None) -> pa.RecordBatch:
        """The batch as Arrow data; ``unit`` may be a timestamp type where ticks are microseconds."""
        from anabranch.model.arrow import record_batch

        return record_batch(self, unit=unit)

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """The batch through Arrow's array interface, for libraries that read it."""
        return self.to_arrow().__arrow_c_array__(requested_schema)


def holds(kinds: NDArray[np.int8], kind: int) -> bool:
    """Whether an element of a kind is among some: among their bytes, in 0.3 µs where ``max`` takes 3."""
    return kind in kinds.tobytes()


def _read_only(column: NDArray[Any]) -> NDArray[Any]:
    """The column as compiled loops know it: each kind of array they are given is compiled anew."""
    column = column.view() if column.flags.c_contiguous else np.ascontiguousarray(column)
    column.flags.writeable = False
    return column


def concat(parts: Sequence[Batch]) -> Batch:
    """One batch after the other; payload columns that only some have are null in the others.

    Identities that all parts have, of the same columns, are kept: a column that is null changes none.
    """
    if len(parts) <= 1:
        return parts[0] if parts else Batch.of([])
    names = {name: code for code, name in enumerate(dict.fromkeys(n for part in parts for n in part.inputs))}
    tagged = [part for part in parts if part.input is not None]
    assert not tagged or len(tagged) == len(parts), "either every part is tagged or none is"
    codes = [np.array([names[n] for n in part.inputs], np.int32)[part.input] for part in tagged]
    whole = Batch(
        np.concatenate([part.kind for part in parts]),
        np.concatenate([part.start for part in parts]),
        np.concatenate([part.end for part in parts]),
        np.concatenate([part.old_end for part in parts]),
        stacked([part.payload for part in parts]),
        np.concatenate(codes) if tagged else None,
        tuple(names),
        joined([part.origin for part in parts]),
    )
    some = [part for part in parts if len(part)]
    columns = {part.__dict__.get("by") for part in some}
    if len(columns) != 1 or any("identities" not in part.__dict__ for part in some):
        return whole
    return whole.identified(np.concatenate([part.identities for part in some]), *columns)


def _times(element: Element | Control) -> tuple[int, int, int, int]:
    match element:
        case Insert(start=start, end=end):
            return Kind.INSERT, start, end, 0
        case Adjust(start=start, old_end=old_end, end=end):
            return Kind.ADJUST, start, end, old_end
        case Stable(time=time):
            return Kind.STABLE, time, 0, 0
        case Attach(guarantee=guarantee):
            return Kind.ATTACH, guarantee, 0, 0
        case Detach():
            return Kind.DETACH, 0, 0, 0
        case other:
            raise TypeError(f"a stream is made of inserts, adjusts and stables, {other!r} is none")
