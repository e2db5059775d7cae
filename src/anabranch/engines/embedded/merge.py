"""Live inputs merged as they arrive.

Memory: what the merger holds, and ``waiting`` batches of each input.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any

from anabranch.engines.embedded.inbox import Ended, Inbox
from anabranch.kernels.merge.merger import Merger
from anabranch.model.batch import Batch, concat
from anabranch.model.time import FOREVER


def merge(
    inputs: Mapping[str, Iterable[Any]],
    merger: Merger | None = None,
    *,
    waiting: int = 4,
    on_failure: Callable[[str, BaseException], object] | None = None,
) -> Generator[Batch, None, None]:
    """Several iterables of batches, of Arrow data or of lists of elements, as one stream.

    Each input is read by a thread of its own, at most ``waiting`` batches ahead of what has been merged.
    Batches are merged in the order of arrival, and only when the caller asks for more; output comes as soon
    as there is any.

    Inputs that are not attached to the merger yet are attached, as complete, in the order of the mapping;
    those that are stay as they are. An input that ends is detached: its end promises nothing, only a
    stable(FOREVER) does, and one that has said it is detached when all have ended.

    An input that raises, or says what the merger refuses, has failed: it is detached and the others go on.
    ``on_failure`` is told its name and the error as soon as that happens; without it the first error is
    raised when all others have ended, with a note that names the input.

    Closing the generator, or leaving the loop over it, closes the inputs and leaves the merger as it is after
    the last batch: all that was merged has been given out. What was read and not merged is lost to this run;
    an input goes on after the ``elements + refused`` elements that ``merger.status()`` counts for it. One
    that blocks is closed when it returns. An interrupt (Ctrl-C) may come in the middle of a merge step, so
    who goes on after one goes on from `Merger.dump`.

    >>> from anabranch import Insert, Stable, merge
    >>> replica = [[Insert({"room": "A"}, 6, 20)], [Stable(FOREVER)]]
    >>> for batch in merge({"east": replica, "west": replica}):
    ...     print(*batch.elements())
    Insert(payload={'room': 'A'}, start=6, end=20)
    Stable(time=9223372036854775807)
    """
    if waiting < 1:
        raise ValueError(f"an input is read at least 1 batch ahead, not {waiting}")
    merger = Merger() if merger is None else merger
    settled = [merger.attach(name) for name in inputs if name not in merger.inputs]
    return _merged(inputs, merger, settled, waiting, on_failure)


def _merged(
    inputs: Mapping[str, Iterable[Any]],
    merger: Merger,
    settled: list[Batch],
    waiting: int,
    on_failure: Callable[[str, BaseException], object] | None,
) -> Generator[Batch, None, None]:
    failures: dict[str, BaseException] = {}
    speaking, closed = set(inputs), []
    inbox = Inbox(inputs, waiting)
    try:
        yield from _together(settled)
        inbox.open()
        while speaking:
            name, said = inbox.take()
            if name not in speaking:
                continue
            if name not in merger.inputs:  # the caller has detached it
                speaking.remove(name)
                inbox.dismiss(name)
                continue
            output, error = _heard(merger, name, said)
            if isinstance(said, Ended) or error is not None:
                speaking.remove(name)
                inbox.dismiss(name)
                if error is None and merger.inputs[name].said == FOREVER:
                    closed.append(name)
                else:
                    output.append(merger.detach(name))
            if error is not None and on_failure is None:
                failures[name] = error
            elif error is not None and on_failure is not None:
                on_failure(name, error)
            yield from _together(output)
        yield from _together([merger.detach(name) for name in closed if name in merger.inputs])
    finally:
        inbox.close()
    if failures:
        raise _first(failures, merger)


def _heard(merger: Merger, name: str, said: Batch | Ended) -> tuple[list[Batch], BaseException | None]:
    """What comes out, and why the input has failed if it has."""
    if isinstance(said, Ended):
        return [], said.error
    try:
        return [merger.push(name, said)], None
    except (ValueError, TypeError, OverflowError) as refused:
        output = getattr(refused, "output", None)
        return [] if output is None else [output], refused


def _together(parts: list[Batch]) -> Iterator[Batch]:
    """One batch of all that came out, if anything did: whoever leaves the loop has been given it."""
    some = [part for part in parts if len(part)]
    if some:
        yield concat(some)


def _first(failures: Mapping[str, BaseException], merger: Merger) -> BaseException:
    (name, error), *others = failures.items()
    merged = merger.status().inputs[name].elements
    error.add_note(f"Input {name!r} failed after {merged} elements and was detached; the others were merged.")
    for other, too in others:
        error.add_note(f"Input {other!r} failed too: {too!r}")
    return error
