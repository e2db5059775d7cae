"""What sessions and windows of rows share: how rows are read for aggregates, and what is emitted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.expressions.aggregates import Aggregate
from anabranch.kernels.aggregate.aggregation import Aggregation, failures
from anabranch.kernels.aggregate.column import Slots
from anabranch.kernels.aggregate.groups import Groups
from anabranch.kernels.failed import failed
from anabranch.kernels.kernel import Refused, Result
from anabranch.kernels.store.waiting import Waiting
from anabranch.model.batch import Batch, Kind
from anabranch.model.clock_columns import times
from anabranch.model.rows import rows_without_columns


@dataclass(frozen=True, slots=True)
class Settings:
    """What is aggregated, by which groups, and what is emitted."""

    columns: tuple[str, ...]
    """The group columns."""
    aggregates: tuple[tuple[str, Aggregate], ...]
    given: pa.Schema
    """The columns of the input."""
    schema: pa.Schema
    """Those of the output: groups, aggregates, and the bounds of the window where they are wanted."""
    bounds: tuple[bool, bool] = (False, False)
    waits: bool = True
    """Rows wait for the stable: they may be removed, or are looked at in order."""


def readable(
    aggregation: Aggregation, batch: Batch, *, removals: bool
) -> tuple[Batch, list[pa.Array], tuple[Refused, ...]]:
    """The inserts of a batch (and its removals), the values of arguments, and rows without such values."""
    chosen = batch.kind == Kind.INSERT
    if removals:
        chosen |= (batch.kind == Kind.ADJUST) & (batch.end == batch.start)
    rows = batch if chosen.all() else batch.take(chosen)
    arrays, reasons = aggregation.read(rows)
    if not reasons:
        return rows, arrays, ()
    places = sorted(reasons)
    refused = failed(rows, np.array(places, np.int64), [reasons[place] for place in places])
    keep = np.ones(len(rows), np.bool_)
    keep[places] = False
    return rows.take(keep), [array.filter(pa.array(keep)) for array in arrays], refused


def wait(waiting: Waiting, columns: Sequence[str], rows: Batch, arrays: Sequence[pa.Array]) -> None:
    """Let rows wait with their group columns and arguments, known by what they are as a whole."""
    kept = [*(rows.payload.column(name) for name in columns), *arrays]
    names = [f"column {n}" for n in range(len(kept))]
    payload = pa.RecordBatch.from_arrays(kept, names=names) if kept else rows_without_columns(len(rows))
    sign = np.where(rows.kind == Kind.INSERT, np.int8(1), np.int8(-1))
    waiting.add(rows.start, waiting.admit(payload), sign=sign, words=rows.identities)


def ready(waited: Batch, groups: pa.Schema) -> tuple[Batch, list[pa.Array]]:
    """Rows that have waited, with the columns of their groups, and their arguments."""
    keys, columns = rows_without_columns(len(waited)), waited.payload.columns
    if len(groups):
        found = [one.cast(kind) for one, kind in zip(columns, groups.types, strict=False)]
        keys = pa.RecordBatch.from_arrays(found, schema=groups)
    return waited.with_new_payload(keys), columns[len(groups) :]


def emitted(
    settings: Settings,
    aggregation: Aggregation,
    groups: Groups,
    slots: Slots,
    numbers: NDArray[np.int32],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
) -> Result:
    """The results of windows, by their slots, groups and lifetimes."""
    rows = aggregation.rows(slots)
    if rows is not None:
        slots, numbers, start, end = slots[rows], numbers[rows], start[rows], end[rows]
    said = aggregation.said(slots)
    columns = [*groups.at(numbers), *(one.values for one in said)]
    wanted = [ticks for ticks, named in zip((start, end), settings.bounds, strict=True) if named]
    for ticks, kind in zip(wanted, settings.schema.types[len(columns) :], strict=True):
        columns.append(times(ticks, dtype=kind))
    payload = pa.RecordBatch.from_arrays(columns, schema=settings.schema)
    batch = Batch(np.zeros(len(slots), np.int8), start, end, np.zeros_like(end), payload)
    lost, why = failures(said, slots)
    if not lost.any():
        return Result(batch)
    keys = (
        pa.RecordBatch.from_arrays(
            columns[: len(settings.columns)],
            schema=pa.schema([settings.given.field(name) for name in settings.columns]),
        )
        if settings.columns
        else rows_without_columns(len(batch))
    )
    refused = failed(batch.with_new_payload(keys), np.array(sorted(why)), [why[n] for n in sorted(why)])
    return Result(batch.take(~lost), refused)
