"""Streams in files, by name."""

from collections.abc import Iterable, Iterator

from anabranch.connectors.files.reading import Source
from anabranch.connectors.files.writing import Target
from anabranch.model.batch import Batch
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
    path: str,
    stream: Batch | Iterable[Batch] | Iterable[Element | Tagged],
    *,
    format: str | None = None,  # noqa: A002
    dialect: str | None = None,
) -> int:
    """Write a stream to a file, whole or not at all; how many elements that was."""
    return Target.named(path, format, dialect).write(_batches(stream))


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
