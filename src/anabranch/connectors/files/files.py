"""Streams in files, by name."""

from collections.abc import Iterable, Iterator
from os import PathLike, fspath
from typing import Any, Protocol, cast

import pyarrow as pa

from anabranch.connectors.files.reading import Source
from anabranch.connectors.files.writing import Target
from anabranch.connectors.running import Run
from anabranch.model.arrow import batches
from anabranch.model.batch import Batch
from anabranch.model.clock import Clock
from anabranch.model.clock_columns import clock_of_elements
from anabranch.model.elements import Element, Tagged
from anabranch.model.validity import Policy


class ArrowTable(Protocol):
    """A table of any library with Arrow's C stream."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Its columns."""


def read(
    path: str,
    *,
    format: str | None = None,  # noqa: A002
    dialect: str | None = None,
    policy: Policy | None = None,
) -> Iterator[Batch]:
    """The stream in a file, a batch at a time; ``-`` is standard input."""
    return Source.named(path, format, dialect).batches(policy=policy)


def write(
    path: str | PathLike[str],
    stream: Batch | Iterable[Batch] | Iterable[Element | Tagged] | ArrowTable,
    *,
    format: str | None = None,  # noqa: A002
    dialect: str | None = None,
) -> int:
    """Write a stream to a file, whole or not at all; how many elements that was.

    A stream is a batch, batches, elements, a table of elements (of pyarrow, pandas, Polars, DuckDB), or what
    `run` gives. Times of a table and of a run are written as what they are, those of others as ticks.
    """
    where, what = cast(Any, path), cast(Any, stream)
    if not isinstance(where, str | PathLike):
        error = TypeError(f"write takes a path and then a stream, and the path is {path!r:.100}")
        error.add_note("Write write('out.parquet', stream).")
        raise error
    if not isinstance(what, Batch) and hasattr(what, "__arrow_c_stream__"):
        table = pa.table(what)
        clock, what = clock_of_elements(table.schema), batches(table)
    else:
        clock = stream.clock if isinstance(stream, Run) else Clock.TICKS
    if isinstance(what, str | PathLike) or not isinstance(what, Iterable):
        error = TypeError(f"write takes a path and then a stream, and the stream is {stream!r:.100}")
        error.add_note("Give a Batch, elements, a table of elements, or what anabranch.run gives.")
        raise error
    if dialect is not None:
        clock = Clock.TICKS
    return Target.named(fspath(path), format, dialect, clock=clock).write(_batches(what))


def _batches(stream: Batch | Iterable[Batch] | Iterable[Element | Tagged]) -> Iterator[Batch]:
    if isinstance(stream, Batch):
        yield stream
        return
    items = iter(stream)
    first = next(items, None)
    if isinstance(first, Batch):
        yield first
        yield from items  # type: ignore[misc]
    elif first is not None:
        yield Batch.of([first, *items])  # type: ignore[list-item]
