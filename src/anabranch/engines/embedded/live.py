"""A plan over live feeds: each is read by a thread of its own, and what arrives first is pushed first.

One that ends leaves the merges behind it: its end promises nothing. One that raises, or says what is refused,
has failed: it is at its end too, and the others go on.

Memory: what the plan holds, and ``waiting`` pieces of each feed.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from time import monotonic
from typing import Any

from anabranch.engines.embedded.feeds import Feed, Mark, Reading, enter, feeds_of
from anabranch.engines.embedded.inbox import Ended, Inbox
from anabranch.engines.embedded.passes import Passes
from anabranch.engines.embedded.positions import Positions
from anabranch.engines.embedded.run import ended
from anabranch.engines.embedded.stopping import Stop
from anabranch.model.batch import Batch
from anabranch.model.validity import InvalidElementError

WAITING = 4
"""Pieces of a feed that are read ahead, at most."""


def live(
    passes: Passes,
    inputs: Mapping[str, Any],
    *,
    waiting: int = WAITING,
    timeout: float | None = None,
    on_failure: Callable[[str, BaseException], object] | None = None,
    stop: Stop | None = None,
    positions: Positions | None = None,
) -> Generator[dict[str, Batch], None, None]:
    """What comes out of a plan, by output, as its sources speak.

    ``on_failure`` is told the feed that failed and the error as soon as that happens; without it the first
    error is raised when all others have ended. It is over when all feeds are, when it is asked to ``stop``,
    and after a ``timeout`` in seconds: the plan stays as it is after the last piece, and all that came of it
    has been given out. What was read until then of feeds that cannot be read again is used first. Closing the
    generator closes the feeds. ``positions`` say from where feeds are read, and follow how far.
    """
    if waiting < 1:
        raise ValueError(f"an input is read at least 1 piece ahead, not {waiting}")
    reading = Reading(live=True, stop=Stop() if stop is None else stop)
    positions = Positions() if positions is None else positions
    feeds = positions.resumed(feeds_of(passes, inputs, reading))
    return _live(passes, feeds, waiting, timeout, on_failure, reading.stop, positions)


def _live(
    passes: Passes,
    feeds: Sequence[Feed],
    waiting: int,
    timeout: float | None,
    on_failure: Callable[[str, BaseException], object] | None,
    stop: Stop,
    positions: Positions,
) -> Generator[dict[str, Batch], None, None]:
    failures: dict[str, BaseException] = {}
    speaking = {feed.label: feed for feed in feeds}
    again = {feed.label for feed in feeds if feed.again}
    inbox = Inbox({feed.label: feed.items for feed in feeds}, waiting, stop, again=again)
    enter(passes, feeds)
    until = None if timeout is None else monotonic() + timeout
    try:
        inbox.open()
        while speaking and (taken := inbox.take(until)) is not None:
            label, said = taken
            if label not in speaking:
                continue
            if isinstance(said, Mark):
                positions.mark(speaking[label], said)
                continue
            output, error = _taken(passes, speaking[label], said, positions)
            yield from _some(output)
            if error is None and not isinstance(said, Ended):
                continue
            feed = speaking.pop(label)
            inbox.dismiss(label)
            if error is not None and on_failure is None:
                failures[label] = error
            elif error is not None and on_failure is not None:
                on_failure(label, error)
            if stop.asked():
                continue
            output = ended(passes, feed, speaking.values(), closes=False)
            if error is None:
                positions.end(feed)
            yield from _some(output)
    finally:
        inbox.close()
    if failures:
        raise _first(failures)


def _taken(
    passes: Passes, feed: Feed, said: Any, positions: Positions
) -> tuple[dict[str, Batch], BaseException | None]:
    """What comes out, and why the input has failed if it has."""
    if isinstance(said, Ended):
        return {}, said.error
    try:
        return positions.push(passes, feed, said), None
    except InvalidElementError as refused:
        return refused.output or {}, refused
    except (ValueError, TypeError, OverflowError) as refused:
        if passes.flow.midway:
            raise
        return {}, refused


def _some(output: Mapping[str, Batch]) -> Generator[dict[str, Batch], None, None]:
    if any(len(batch) for batch in output.values()):
        yield dict(output)


def _first(failures: Mapping[str, BaseException]) -> BaseException:
    (name, error), *others = failures.items()
    error.add_note(f"Source {name!r} failed and was taken for ended; the others went on.")
    for other, too in others:
        error.add_note(f"Source {other!r} failed too: {too!r}")
    return error
