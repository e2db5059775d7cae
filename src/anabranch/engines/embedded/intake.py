"""What is pushed to a source, whatever its form, as rows of channels."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.model.application import STABLE
from anabranch.model.batch import Batch
from anabranch.model.elements import Adjust, Insert, Stable, Tagged
from anabranch.model.exact import exact_column
from anabranch.model.origin import Origin
from anabranch.model.relation import as_batch
from anabranch.model.rows import stacked
from anabranch.model.schema import SchemaError, conformed
from anabranch.model.spelling import did_you_mean
from anabranch.model.validity import Rule
from anabranch.plan.node import PlanError
from anabranch.plan.source import Source
from anabranch.progress.channel_rows import ChannelRows, Elements, Stretch
from anabranch.rows.reading import Place, Read, read_rows
from anabranch.rows.refusal import Refusal
from anabranch.rows.row_keys import RowKeys

_NOTHING = ChannelRows((), Batch.of([]))


@dataclass(frozen=True, slots=True)
class Intake:
    """What was pushed, and the rows that stand for nothing."""

    rows: ChannelRows = _NOTHING
    malformed: Sequence[Refusal] = ()
    keys: RowKeys | None = None
    """The keys of rows that have names for their values; None: they have columns."""

    def __len__(self) -> int:
        return len(self.rows) + len(self.malformed)

    def cut(self, before: Callable[[Elements], int]) -> tuple["Intake", "Intake"]:
        """What is before a place in what each channel sends, with what stands for nothing, and the rest."""
        first, rest = self.rows.cut(before)
        return Intake(first, self.malformed, self.keys), Intake(rest)


def intake(source: Source, given: Any, replica: str | None, heard: int) -> Intake:
    """What is given to a source after so many rows or elements."""
    if isinstance(given, Intake):
        return given
    if replica is not None and not source.replicated:
        error = PlanError(f"{source.name!r} is not of replicas, and {replica!r} is said to have sent this")
        error.add_note("Leave the replica out, or give the source replica=….")
        raise error
    if source.layout is None or isinstance(given, Batch) or _is_elements(given):
        return _elements(source, given, replica, heard)
    return _rows(source, given, replica, heard)


_ELEMENTS = Insert | Adjust | Stable


def _is_elements(given: Any) -> bool:
    if isinstance(given, list | tuple):
        return bool(given) and isinstance(given[0], _ELEMENTS | Tagged)
    return isinstance(given, _ELEMENTS)


def _elements(source: Source, given: Any, replica: str | None, heard: int) -> Intake:
    if isinstance(given, list | tuple) and given:
        if isinstance(given[0], Mapping):
            error = SchemaError(f"{source.name!r} is of elements, and a row was pushed: {given[0]!r:.100}")
            error.add_note(
                "Push Insert, Adjust and Stable, or say what the columns mean: source(…, start=…)."
            )
            raise error
        if not isinstance(given[0], Tagged) and source.columns is not None:
            return _elements_in_columns(source, given, replica, heard)
        batch = Batch.of(given)
    else:
        batch = as_batch(_iterable(source, given, "elements"))
    return element_intake(
        source, batch, Origin(np.arange(heard + 1, heard + 1 + len(batch))), replica=replica
    )


def _elements_in_columns(source: Source, given: Sequence[Any], replica: str | None, heard: int) -> Intake:
    """Elements with the columns of the source; those whose payloads do not fit stand for nothing."""
    numbers, unfit = np.arange(heard + 1, heard + 1 + len(given)), dict[int, str]()
    try:
        if any(_odd_names(source, one) for one in given):
            raise SchemaError("some have columns that the source has not")
        batch = Batch.of(given, schema=source.schema)
    except SchemaError:
        unfit = {row: reason for row, one in enumerate(given) if (reason := _misfit(source, one))}
        if not unfit:
            raise
        batch = Batch.of([one for row, one in enumerate(given) if row not in unfit], schema=source.schema)
    fit = [row for row in range(len(given)) if row not in unfit] if unfit else slice(None)
    taken = element_intake(source, batch, Origin(numbers[fit]), replica=replica)
    name = _name(source, replica)
    return Intake(
        taken.rows,
        [
            Refusal(Rule.MALFORMED.value, why, name, f"{source.name} element {numbers[row]}", str(given[row]))
            for row, why in unfit.items()
        ],
    )


def _odd_names(source: Source, element: Any) -> list[str]:
    if not isinstance(element, Insert | Adjust):
        return []
    return [name for name in element.payload if name not in source.schema.names]


def _misfit(source: Source, element: Any) -> str:
    """Why an element has not the columns of its source; nothing where it has."""
    odd = _odd_names(source, element)
    if odd:
        known = source.schema.names
        return (
            f"{source.name!r} has no column {odd[0]!r}, it has {', '.join(map(repr, known))}"
            f"{did_you_mean(odd[0], known)}"
        )
    try:
        Batch.of([element], schema=source.schema)
    except SchemaError as reason:
        return str(reason)
    return ""


def _iterable(source: Source, given: Any, what: str) -> Any:
    """What is given, if it can be gone through."""
    if isinstance(given, str | bytes) or not (isinstance(given, _ELEMENTS | Iterable) or _is_arrow(given)):
        error = TypeError(f"{what} are pushed to {source.name!r}, and this is none: {given!r:.200}")
        error.add_note("Push a list, a Batch, or a table; what stands in files is read by anabranch.run.")
        raise error
    return given


def element_intake(source: Source, batch: Batch, origin: Origin, *, replica: str | None = None) -> Intake:
    """Elements of the replicas that they name, or of the one that is said to have sent them."""
    if not len(batch):
        return Intake()
    batch = _in_columns(source, batch).with_origin(origin)
    if batch.input is None:
        return Intake(ChannelRows.of(batch, _name(source, replica)))
    if not source.replicated:
        wrong = PlanError(f"{source.name!r} is not of replicas, and what was pushed says who sent it")
        wrong.add_note("Give the source replica=….")
        raise wrong
    codes, stretch = np.unique(batch.input, return_inverse=True)
    order = np.argsort(stretch, kind="stable")
    stretches = tuple(Stretch(batch.inputs[code]) for code in codes.tolist())
    return Intake(ChannelRows(stretches, batch.untagged().take(order), stretch[order].astype(np.int32)))


def _in_columns(source: Source, batch: Batch) -> Batch:
    """The elements in the columns of the source; what it does not have is refused, nulls may be left out."""
    if source.columns is None or batch.payload.schema.equals(source.schema):
        return batch
    odd = [name for name in batch.payload.schema.names if name not in source.schema.names]
    if odd:
        error = SchemaError(
            f"{source.name!r} has no column {odd[0]!r}{did_you_mean(odd[0], source.schema.names)}"
        )
        error.add_note(f"Its columns are {', '.join(map(repr, source.schema.names))}.")
        raise error
    return batch.with_payload(conformed(batch.payload, source.schema))


def _rows(source: Source, given: Any, replica: str | None, heard: int) -> Intake:
    assert source.layout is not None
    rows, unfit = rows_in_columns(source, given, replica)
    if not rows.num_rows:
        return Intake()
    place = Place(source.name, heard + 1, heard + 1)
    read = read_rows(source.reads, rows, place)
    reasons = {place.of(row): reason for row, reason in unfit.items()}
    taken = read_intake(source, read, replica=replica)
    malformed = [replace(one, **reasons.get(one.place, {})) for one in taken.malformed]
    return Intake(taken.rows, malformed, _keys(given))


def _keys(given: Any) -> RowKeys | None:
    """The keys of rows that are mappings; they have been found to be rows."""
    rows = [given] if isinstance(given, Mapping) else given
    if not isinstance(rows, list | tuple):
        return None
    keys = RowKeys()
    keys.add(row for row in rows if isinstance(row, Mapping))
    return keys


def read_intake(
    source: Source, read: Read, origin: Origin | None = None, *, replica: str | None = None
) -> Intake:
    """Rows that were read, those of each channel in its order.

    ``origin`` is which row of what each was; without it, the place in its channel that it was read with.
    """
    if not source.replicated and read.batch.kind.max(initial=0) > STABLE:
        reason = f"a replica is attached and detached, and {source.name!r} is not of replicas"
        rest, origin = _without(source, read, origin, read.batch.kind > STABLE, reason)
        return read_intake(source, rest, origin)
    others = [name for name in read.replicas if name != replica]
    if replica is not None and source.layout is not None and source.layout.replica is not None and others:
        number = read.replicas.index(replica) if replica in read.replicas else -1
        reason = f"a row is of the replica that it names, and it was sent as one of {replica!r}"
        read, origin = _without(source, read, origin, read.replica != number, reason)
    if not len(read.batch):
        return Intake(malformed=read.refused)
    if len(read.replicas) == len(read.channels) == 1 and read.in_order:
        whose = (replica or read.replicas[0]) if source.replicated else ""
        known = Origin(read.sequence, None, (read.channels[0],)) if origin is None else origin
        rows = ChannelRows.of(read.batch.with_origin(known), whose, read.channels[0])
        return Intake(rows, read.refused)
    pair = read.replica * len(read.channels) + read.channel
    pairs, stretch = np.unique(pair, return_inverse=True)
    stretches = tuple(
        Stretch((replica or read.replicas[code]) if source.replicated else "", read.channels[channel])
        for code, channel in (divmod(one, len(read.channels)) for one in pairs.tolist())
    )
    if origin is None:
        origin = Origin(read.sequence, read.channel.astype(np.int32), tuple(read.channels))
    order = np.lexsort((read.sequence, stretch))
    batch = read.batch.take(order).with_origin(origin.take(order))
    return Intake(ChannelRows(stretches, batch, stretch[order].astype(np.int32)), read.refused)


def _without(
    source: Source, read: Read, origin: Origin | None, wrong: NDArray[np.bool_], reason: str
) -> tuple[Read, Origin | None]:
    """What was read but for some rows, which are refused for a reason."""
    refused = [
        Refusal(
            Rule.MALFORMED.value,
            reason,
            read.replicas[read.replica[row]] if source.replicated else "",
            f"{source.name} row {read.sequence[row]}",
            str(read.batch.element(row)),
        )
        for row in np.flatnonzero(wrong).tolist()
    ]
    stays = ~wrong
    rest = replace(
        read,
        batch=read.batch.take(stays),
        replica=read.replica[stays],
        channel=read.channel[stays],
        sequence=read.sequence[stays],
        refused=[*read.refused, *refused],
    )
    return rest, None if origin is None else origin.take(np.flatnonzero(stays))


def _name(source: Source, replica: str | None) -> str:
    if not source.replicated:
        return ""
    if replica is None:
        error = PlanError(f"{source.name!r} is of replicas, and who sent this is not said")
        error.add_note(f"Write push({source.name!r}, …, replica='…').")
        raise error
    return replica


def rows_in_columns(
    source: Source, given: Any, replica: str | None = None
) -> tuple[pa.RecordBatch, dict[int, dict[str, str]]]:
    """Rows of any form in the columns of a source; those that do not fit are null, and have a reason.

    Where it is known which ``replica`` sent them, they need not say it.
    """
    assert source.columns is not None, "rows have columns"
    if isinstance(given, Mapping):
        given = [given]
    given = _iterable(source, given, "rows")
    own = None if source.layout is None else source.layout.replica
    if isinstance(given, Iterable) and not hasattr(given, "__arrow_c_stream__") and not _is_arrow(given):
        mappings = [_of_replica(source, _row(source, row), replica) for row in given]
        return _fitting(mappings, source.columns, own)
    rows = _one_batch(given)
    if replica is not None and own is not None and own not in rows.schema.names:
        rows = rows.append_column(own, pa.repeat(pa.scalar(replica, pa.string()), rows.num_rows))
    there = rows.schema.names
    if there == source.columns.names:
        return conformed(rows, source.columns), {}
    missing = [name for name in source.columns.names if name not in there]
    if missing:
        error = SchemaError(
            f"rows of {source.name!r} have column {missing[0]!r}, and these have not"
            f"{did_you_mean(missing[0], there)}"
        )
        error.add_note(f"They have {', '.join(map(repr, there))}.")
        raise error
    return conformed(rows.select(source.columns.names), source.columns), {}


def _one_batch(given: Any) -> pa.RecordBatch:
    """Arrow data of any form as one record batch, which is not copied where it is one already."""
    if isinstance(given, pa.RecordBatch):
        return given
    table = given if isinstance(given, pa.Table) else pa.table(given)
    batches = table.to_batches()
    if not batches:
        return pa.RecordBatch.from_pylist([], table.schema)
    return batches[0] if len(batches) == 1 else stacked(batches)


def _of_replica(source: Source, row: dict[str, Any], replica: str | None) -> dict[str, Any]:
    """A row, whose column of the replica says it."""
    own = None if source.layout is None else source.layout.replica
    return row if replica is None or own is None or row.get(own) is not None else {**row, own: replica}


def _fitting(
    rows: list[dict[str, Any]], columns: pa.Schema, own: str | None
) -> tuple[pa.RecordBatch, dict[int, dict[str, str]]]:
    try:
        return _columns_of(rows, columns), {}
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        unfit, fitting = {}, []
        for number, row in enumerate(rows):
            wrong = [one for one in columns if not _fits(row, one)]
            if not wrong:
                fitting.append(row)
                continue
            unfit[number] = {"reason": _unlike(row, wrong[0]), "raw": str(row)}
            unusable = {one.name for one in wrong}
            fitting.append({} if own is None or own in unusable else {own: row.get(own)})
        return _columns_of(fitting, columns), unfit


def _fits(row: Mapping[str, Any], column: pa.Field) -> bool:
    try:
        exact_column([row.get(column.name)], column.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True


def _unlike(row: Mapping[str, Any], column: pa.Field) -> str:
    value = row.get(column.name)
    shown = repr(str(value) if isinstance(value, date) else value)
    brief = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return f"column {column.name!r} is {column.type}, and this row has {brief}"


def _columns_of(rows: list[dict[str, Any]], columns: pa.Schema) -> pa.RecordBatch:
    made = [exact_column([row.get(one.name) for row in rows], one.type) for one in columns]
    return pa.RecordBatch.from_arrays(made, schema=columns)


def _row(source: Source, row: Any) -> dict[str, Any]:
    if isinstance(row, Mapping):
        return dict(row)
    assert source.columns is not None, "rows have columns"
    error = TypeError(f"a row of {source.name!r} is a mapping of columns to values, not {row!r:.200}")
    error.add_note(f"Write {{{', '.join(f'{name!r}: …' for name in source.columns.names)}}}.")
    raise error


def _is_arrow(given: Any) -> bool:
    return isinstance(given, pa.RecordBatch | pa.Table) or hasattr(given, "__arrow_c_array__")
