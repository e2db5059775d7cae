"""What a run reads: feeds, each of which says in its own order what one channel of a source does.

An iterable is one feed. A mapping from names of replicas to iterables is one for each. Whatever else can be
read (files, topics, tables) makes its own.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from anabranch.engines.embedded.passes import Passes
from anabranch.engines.embedded.stopping import Stop
from anabranch.model.spelling import did_you_mean, nearest
from anabranch.model.time import BEGINNING
from anabranch.plan.node import PlanError
from anabranch.plan.source import Source
from anabranch.rows.replica_names import check_replicas, named_in


@dataclass(slots=True)
class Extent:
    """State: how much there is of a feed, and how much of it has been read, in whatever it is measured."""

    size: int
    done: int = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """Stands between the pieces of a feed: what comes next can be read again from a place."""

    place: Any
    """Plain values, as JSON has them."""

    def __len__(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class Positioned:
    """How a feed that gives marks is read from one of them."""

    kind: str
    """What is read, for people; places of one kind mean nothing in another."""
    after: Callable[[Any, int], Iterable[Any]]
    """What it gives from the place in a mark on, after which so many rows were used: if any were, the same
    pieces as before. It raises where that has changed."""
    begin: Any = None
    """The place in which it begins, where it may begin elsewhere another time."""
    joins: Any = None
    """The place from which it is read where it appears after others of its replica were read; None: it is
    another input then."""


@dataclass(frozen=True, slots=True)
class Feed:
    """One channel of a source, and what it says."""

    source: str
    items: Iterable[Any]
    replica: str = ""
    """Who says it; none where the source is not of replicas, or what is said names them."""
    channel: str = ""
    extent: Extent | None = None
    """None: nobody knows where it ends."""
    again: bool = False
    """It can be read again."""
    positioned: Positioned | None = None
    """None: it gives no marks, and another run is given what comes after."""
    part: str = ""
    """Which one it is of those that are read for a source, where several are of one channel."""

    @property
    def label(self) -> str:
        """What it is called, for people."""
        return " ".join(part for part in (self.source, self.replica, self.channel, self.part) if part)

    def reached(self, passes: Passes) -> int:
        """How far it has come."""
        gate = passes.gates[self.source]
        if not self.replica and not self.channel:
            return min(map(gate.stable, gate.replicas), default=BEGINNING)
        return gate.channels.reached(self.replica, self.channel)


@dataclass(frozen=True, slots=True)
class Reading:
    """How feeds are read."""

    live: bool = False
    """They are followed; else read up to where they end now."""
    finish: bool = True
    """Where they are not followed, they are over at their ends."""
    stop: Stop = field(default_factory=Stop)
    """Ends feeds that are followed."""

    @property
    def waits(self) -> bool:
        """What is not complete yet is left for later."""
        return self.live or not self.finish


@runtime_checkable
class Readable(Protocol):
    """Something that can be read, for a source of a plan."""

    def feeds(self, source: Source, reading: Reading) -> list[Feed]:
        """What is read of it."""
        ...


def feeds_of(passes: Passes, inputs: Mapping[str, Any], reading: Reading) -> list[Feed]:
    """The feeds of all sources of a plan."""
    _check_inputs(passes, inputs)
    found = {name: _feeds(passes.sources[name], given, reading) for name, given in inputs.items()}
    for name, feeds in found.items():
        _check_replicas(passes, passes.sources[name], feeds)
    feeds = [feed for feeds in found.values() for feed in feeds]
    assert len({feed.label for feed in feeds}) == len(feeds), "feeds are told apart by what they are called"
    return feeds


def enter(passes: Passes, feeds: Iterable[Feed]) -> None:
    """Let all in that are going to speak, so that nobody is late only because others were read first."""
    for feed in feeds:
        if feed.replica or feed.channel:
            passes.gates[feed.source].expect(feed.replica, feed.channel or None)


def _feeds(source: Source, given: Any, reading: Reading) -> list[Feed]:
    if isinstance(given, Readable):
        return given.feeds(source, reading)
    if not isinstance(given, Mapping):
        return [Feed(source.name, given, extent=_extent(given))]
    if not source.replicated:
        error = PlanError(f"{source.name!r} is not of replicas, and is given as a mapping of them")
        error.add_note("Give the source replica=…, or one iterable of rows, not a row by itself.")
        raise error
    return [Feed(source.name, items, str(name), extent=_extent(items)) for name, items in given.items()]


def _extent(items: Any) -> Extent | None:
    return Extent(len(items)) if isinstance(items, list | tuple) else None


def _check_replicas(passes: Passes, source: Source, feeds: list[Feed]) -> None:
    """Raise where a setting names a replica that is not read, where all that are read are known by name.

    A job that goes on from a state may have heard others before.
    """
    there = tuple(dict.fromkeys(feed.replica for feed in feeds))
    if not source.replicated or not all(there) or not there or passes.received[source.name]:
        return
    named = named_in(source.lossy, source.silent, source.awaited)
    with source.line.named():
        check_replicas(
            named,
            there,
            f"what is read for {source.name!r}",
            "One that sends nothing yet is given all the same: an empty folder or list.",
        )


def _misspelt(passes: Passes, inputs: Mapping[str, Any], name: str) -> str:
    """The input that was perhaps meant for a source."""
    meant = nearest(name, [one for one in inputs if one not in passes.sources])
    return "" if meant is None else f"; is it {meant!r} that was given for it?"


def _check_inputs(passes: Passes, inputs: Mapping[str, Any]) -> None:
    """Raise where inputs are not the sources of a plan."""
    for name in passes.sources:
        if name not in inputs:
            error = PlanError(
                f"the plan has a source {name!r}, and nothing is given for it"
                f"{_misspelt(passes, inputs, name)}"
            )
            error.add_note(f"Given are {', '.join(map(repr, inputs)) or 'none'}.")
            raise error
    for name in inputs:
        if name not in passes.sources:
            error = PlanError(f"the plan has no source {name!r}{did_you_mean(name, passes.sources)}")
            error.add_note(f"Its sources are {', '.join(map(repr, passes.sources))}.")
            raise error
