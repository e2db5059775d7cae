"""What arrives: copies of one stream, batch by batch in turn, read without anabranch: peers have none."""

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Row = tuple[int, int, int, str]
"""Start, end, number and text."""
Ready = Callable[[Iterable[Any]], Iterable[Any]]
Job = Callable[[], tuple[int, int]]

SCHEMA = pa.schema(
    {"start": pa.int64(), "end": pa.int64(), "number": pa.int64(), "text": pa.string(), "arrival": pa.int64()}
)
KEEP = 500_000_000
"""Ticks for which a system with bounded state remembers a key: several times what copies differ by."""


def copies(folder: Path) -> list[Iterator[pa.RecordBatch]]:
    """The recorded copies, one file each."""
    return [iter(pa.ipc.open_stream(pa.OSFile(str(file)))) for file in sorted(folder.iterdir())]


def in_turn(folder: Path) -> Iterator[tuple[int, pa.RecordBatch]]:
    """All elements in arrival order, each batch with the number of its copy; copies are not equally long."""
    for step in zip_longest(*copies(folder)):
        for number, batch in enumerate(step):
            if batch is not None:
                yield number, batch


def told(batch: pa.RecordBatch, first: int = 0) -> pa.RecordBatch:
    """The rows of a batch, numbered, without the stables, which only we read."""
    rows = batch.filter(pc.not_equal(batch["kind"].cast(pa.string()), "stable"))
    columns = [rows[name] for name in SCHEMA.names[:-1]]
    return pa.RecordBatch.from_arrays([*columns, np.arange(first, first + len(rows))], schema=SCHEMA)


def rows(folder: Path) -> Iterator[pa.RecordBatch]:
    """All rows in arrival order."""
    first = 0
    for _, batch in in_turn(folder):
        part = told(batch, first)
        first += len(part)
        yield part


def tuples(batch: pa.RecordBatch) -> list[Row]:
    """Rows as Python objects."""
    return list(zip(*(batch[name].to_pylist() for name in SCHEMA.names[:-1]), strict=True))
