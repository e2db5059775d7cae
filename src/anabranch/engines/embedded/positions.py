"""How far the feeds of a run have been read, so that another run goes on from there.

A feed with positions gives marks between its pieces: what comes next can be read again from the place in the
mark. A position is the last mark and the number of rows used since. A run that goes on reads from the mark
and leaves out that many rows, which fall into the same pieces because they are read from the same place.

Memory: one mark of each feed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, replace
from typing import Any

from anabranch.engines.embedded.feeds import Feed, Mark
from anabranch.engines.embedded.in_step import end_of_time
from anabranch.engines.embedded.inbox import close, items_of
from anabranch.engines.embedded.intake import Intake
from anabranch.engines.embedded.passes import POSITIONS, Passes
from anabranch.kernels.kernel import State
from anabranch.kernels.store.saved import StateFormatError, version_of
from anabranch.model.batch import Batch

VERSION = 1
_AS_BEFORE = (
    "Give the inputs of the run that had this state, or begin without a state; "
    "open(plan, state).dump() is the state of the plan alone, for inputs that hold what comes after"
)


@dataclass(slots=True)
class Position:
    """State: how far one feed has been read."""

    kind: str
    """What is read; see `Positioned`."""
    place: Any = None
    """In the last mark; None before the first."""
    used: int = 0
    """Rows since that mark."""
    given: int = 0
    """Rows since the feed began."""
    ended: bool = False
    """The plan knows that the feed is at its end, so it is not read again."""


class Positions:
    """State: the positions of all feeds that have any, by label."""

    def __init__(self, saved: State | None = None) -> None:
        rows = {} if saved is None else version_of(saved, VERSION, "positions").values
        self.before = {label: Position(*row) for label, row in rows.items()}
        """What a state says; empty where there is none, so that inputs are read from their beginnings."""
        self.now: dict[str, Position] = {}
        self.unknown: list[str] = []
        """Feeds that are read from their beginning again and have no positions."""

    def saved(self) -> dict[str, State]:
        """The section of a state that has them."""
        if self.unknown:
            raise StateFormatError(
                f"the state of a run says how far its inputs were read, and {self.unknown[0]!r} has no "
                "positions: it would be read again from its beginning. Give it as an iterable, or take "
                "run.job.dump(), which is the state of the plan alone"
            )
        return {POSITIONS: State(VERSION, {label: list(astuple(one)) for label, one in self.now.items()}, [])}

    def resumed(self, feeds: Iterable[Feed]) -> list[Feed]:
        """Feeds that go on where they had been read; those that have ended are left out."""
        feeds = list(feeds)
        positioned = {feed.label: feed for feed in feeds if feed.positioned is not None}
        if self.before:
            self._check(positioned)
        self.unknown = [feed.label for feed in feeds if feed.again and feed.positioned is None]
        for label, feed in positioned.items():
            self.now[label] = self.before.get(label) or self._first(feed)
        return [self._resumed(feed) for feed in feeds if not self._has_ended(feed.label)]

    def mark(self, feed: Feed, mark: Mark) -> None:
        """What a feed gives next is at a place."""
        position = self.now[feed.label]
        position.place, position.used = mark.place, 0

    def push(self, passes: Passes, feed: Feed, piece: Any) -> dict[str, Batch]:
        """What comes out when a feed gives a piece; its rows are counted if they are used."""
        before = passes.received[feed.source]
        try:
            return passes.push(feed.source, piece, feed.replica or None)
        finally:
            position = self.now.get(feed.label)
            if position is not None:
                count = passes.received[feed.source] - before
                position.used += count
                position.given += count

    def end(self, feed: Feed) -> None:
        """The plan knows that a feed is at its end."""
        if feed.label in self.now:
            self.now[feed.label].ended = True

    def given(self) -> dict[str, int]:
        """How many rows each feed has given."""
        return {label: position.given for label, position in self.now.items()}

    def _first(self, feed: Feed) -> Position:
        assert feed.positioned is not None
        place = feed.positioned.joins if self.before else None
        return Position(feed.positioned.kind, feed.positioned.begin if place is None else place)

    def _has_ended(self, label: str) -> bool:
        return label in self.now and self.now[label].ended

    def _resumed(self, feed: Feed) -> Feed:
        position = self.now.get(feed.label)
        if feed.positioned is None or position is None or position.place is None:
            return feed
        items = feed.positioned.after(position.place, position.used)
        return replace(feed, items=_unused(feed.label, items, position.used))

    def _check(self, feeds: dict[str, Feed]) -> None:
        """Raise where what is given is not what the state has positions of."""
        for label, position in self.before.items():
            if label not in feeds:
                raise StateFormatError(
                    f"the state has a position of {label!r} ({position.kind}), and no such input is given: "
                    f"its remaining rows would be lost. {_AS_BEFORE}"
                )
        read = {(feed.source, feed.replica) for label, feed in feeds.items() if label in self.before}
        for label, feed in feeds.items():
            assert feed.positioned is not None
            if label not in self.before and not (
                feed.positioned.joins is not None and (feed.source, feed.replica) in read
            ):
                raise StateFormatError(
                    f"the state has no position of {label!r} ({feed.positioned.kind}), so the run before did "
                    f"not read this input, and its rows may be behind the others. {_AS_BEFORE}"
                )
            kind = self.before[label].kind if label in self.before else feed.positioned.kind
            if kind != feed.positioned.kind:
                raise StateFormatError(
                    f"the state has a position in {kind} for {label!r}, and {feed.positioned.kind} is given, "
                    f"which has no such place. {_AS_BEFORE}"
                )


def _unused(label: str, items: Iterable[Any], used: int) -> Iterator[Any]:
    """What a feed gives after as many rows as were used since its mark."""
    source = items_of(items)
    left = used
    try:
        for item in source:
            if isinstance(item, Mark):
                if left == 0:
                    yield item
                continue
            assert isinstance(item, Intake), "feeds with positions give what they have read"
            if left == 0:
                yield item
                continue
            if len(item) > left:
                first, rest = item.cut(end_of_time)
                if len(first) != left:
                    raise _other_pieces(label, used)
                yield rest
                left = 0
                continue
            left -= len(item)
        if left:
            raise _other_pieces(label, used)
    finally:
        close(source)


def _other_pieces(label: str, used: int) -> StateFormatError:
    return StateFormatError(
        f"{used} rows of {label!r} were used after the place in the state, and those that are read from that "
        "place now end elsewhere: what is read has changed since, so some of it would be lost or repeated. "
        "Put it back as it was, or go on from an earlier state"
    )
