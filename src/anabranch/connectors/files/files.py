"""Streams in files, by name."""

from collections.abc import Iterable, Iterator
from os import PathLike, fspath
from typing import Any, cast

from anabranch.connectors.files.reading import Source
from anabranch.connectors.files.writing import Target
from anabranch.connectors.running import Run
from anabranch.model.batch import Batch
from anabranch.model.clock import Clock
from anabranch.model.elements import Element, Tagged
from anabranch.model.validity import Policy


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
    stream: Batch | Iterable[Batch] | Iterable[Element | Tagged],
    *,
    format: str | None = None,  # noqa: A002
    dialect: str | None = None,
) -> int:
    """Write a stream to a file, whole or not at all; how many elements that was.

    Times of what `run` gives are written as what they are, those of batches and elements as ticks.
    """
    where, what = cast(Any, path), cast(Any, stream)
    if not isinstance(where, str | PathLike):
        error = TypeError(f"write takes a path and then a stream, and the path is {path!r:.100}")
        error.add_note("Write write('out.parquet', stream).")
        raise error
    if isinstance(what, str | PathLike) or not isinstance(what, Iterable):
        error = TypeError(f"write takes a path and then a stream, and the stream is {stream!r:.100}")
        error.add_note("Give a Batch, elements, or what anabranch.run gives.")
        raise error
    clock = stream.clock if isinstance(stream, Run) else Clock.TICKS
    if dialect is not None:
        clock = Clock.TICKS
    return Target.named(fspath(path), format, dialect, clock=clock).write(_batches(stream))


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
