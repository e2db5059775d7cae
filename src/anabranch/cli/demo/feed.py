"""The rows as files, and what is in the files of the sink."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.cli.demo.readings import BEGIN, LENGTH, Reading, clock
from anabranch.cli.demo.replicas import Row
from anabranch.model.elements import Event, Insert
from anabranch.model.relation import Relation
from anabranch.model.time import BEGINNING, FOREVER, ticks

if TYPE_CHECKING:
    from anabranch.model.batch import Batch

MINUTE = 60
STEPS = LENGTH // MINUTE + 1
"""Files of each replica, one for each minute and one for what comes after the last reading."""
SCHEMA = (
    "said timestamp, kind string, sensor string, value double, "
    "start timestamp, end timestamp, old_end timestamp"
)
_TIMES = ("said", "start", "end", "old_end")
_COLUMNS = pa.schema(
    [
        (
            name,
            pa.timestamp("us", "UTC") if name in _TIMES else pa.float64() if name == "value" else pa.string(),
        )
        for name in ("said", "kind", "sensor", "value", "start", "end", "old_end")
    ]
)


def in_step(rows: Sequence[Row], step: int) -> list[Row]:
    """What is said in one step."""
    return [row for row in rows if min(row.said // MINUTE, STEPS - 1) == step]


def put(folder: Path, step: int, said: Mapping[str, Sequence[Row]]) -> None:
    """Write a file of each replica that says something; they appear whole, after those before, together."""
    parts = [
        _part(folder / name / f"{step:04}.parquet", rows, (step + 1) * MINUTE)
        for name, rows in said.items()
        if rows
    ]
    for part, place in parts:
        part.rename(place)


def _part(place: Path, rows: Sequence[Row], now: int) -> tuple[Path, Path]:
    """A file under a name that nobody looks at, and the name it is to have."""
    part = place.with_name(f".{place.name}")
    pq.write_table(pa.Table.from_batches([columns(rows)]), part)
    then = (BEGIN + timedelta(seconds=now)).timestamp()
    os.utime(part, (then, then))  # Spark's own file source reads files by age
    return part, place


def columns(rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows as they are in a file."""
    arrays = []
    for field in _COLUMNS:
        values = [getattr(row, field.name) for row in rows]
        arrays.append(pa.array(map(_micros, values) if field.name in _TIMES else values, field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=_COLUMNS)


def _micros(time: int | None) -> int | None:
    return None if time is None or time == FOREVER else moment(time)


def moment(time: int) -> int:
    """Seconds of the demo as ticks of a timestamp."""
    return FOREVER if time == FOREVER else ticks(BEGIN) + time * 1_000_000


def seconds(time: int | None) -> int:
    """Ticks of a timestamp as seconds of the demo; an end that is null is open."""
    return FOREVER if time is None or time == FOREVER else (time - ticks(BEGIN)) // 1_000_000


def stable_text(frontier: int) -> str:
    """How far the merge is stable, as the demo shows it; before any stable there is no time to show.

    >>> stable_text(moment(60)), stable_text(BEGINNING), stable_text(FOREVER)
    ('12:01:00', 'nothing yet', 'the end')
    """
    ends = {BEGINNING: "nothing yet", FOREVER: "the end"}
    return ends[frontier] if frontier in ends else clock(seconds(frontier))


def written(folder: Path) -> Iterator[Batch]:
    """What a sink wrote, micro-batch by micro-batch, each with its stable last."""
    from anabranch.model.batch import Batch

    for file in sorted(folder.glob("*.parquet")):
        yield Batch.from_arrow(pq.read_table(file))


def relation(readings: Iterable[Reading]) -> Relation:
    """The events that readings are."""
    found = Relation()
    found.apply(
        [Insert({"sensor": r.sensor, "value": r.value}, moment(r.start), moment(r.end)) for r in readings]
    )
    return found


def reading(event: Event) -> Reading:
    """The reading that an event is."""
    payload = event.payload
    return Reading(seconds(event.start), payload["sensor"], payload["value"], seconds(event.end))
