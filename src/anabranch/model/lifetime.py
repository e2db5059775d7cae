"""How lifetimes are altered: where the image of an event starts, and how long it lasts (SP 2, Definition 6).

An image starts at the start of its event, moved down to a multiple of some ticks or by some ticks, or at its
end. It lasts a number of ticks, for ever, or as long as its event, more or less some ticks or at most some.
The image of a lifetime that would be empty is none.

**Why no others.** Over streams that are revised, an output can promise something only where

- C1: a later start never has an earlier image, and the start of an image depends on the start alone, or is
  the end itself, so that a revision moves it to no earlier than where the input could still change;
- C2: a longer event has no shorter image;
- C3: where the end of an image moves with the end of its event, it does so at a distance that is bounded.
  Half the length of an event is the counterexample: [0, 8) has the image [0, 4), and a stable of 7 lets the
  end move to 7, that of the image to 3, that of [-100, 8) to -47, and so on without bound.

The paper has the first two, and the first without ends, though its own *deletes* start there.

**The ends of time** stay what they are, whatever is added to them. The end of an image that would lie beyond
`FOREVER` is `FOREVER`, so a revision that brings it back is an adjust like any other. A start that would lie
beyond the ends of time is none, and nothing can be counted from a start that is `BEGINNING`: such an event
has no image, and its rows are refused (`Rule.FAILED`). Which events those are depends on the start alone,
which no revision moves.
"""

from dataclasses import dataclass, field, replace
from typing import NoReturn, overload

from anabranch.errors import AnabranchError
from anabranch.model.clock import tick_text
from anabranch.model.properties import Fact, Properties
from anabranch.model.time import FOREVER, LONGEST_SPAN, checked_tick


class UnsoundLifetimeError(AnabranchError, ValueError):
    """Nothing could be promised about a stream whose lifetimes were altered like this."""


def _with(text: str, plus: int) -> str:
    return text if plus == 0 else f"{text} {'+' if plus > 0 else '-'} {abs(plus)}"


def _span(ticks: int, what: str, least: int | None = None) -> None:
    checked_tick(ticks, what)
    if least is not None and ticks < least:
        raise ValueError(f"{what} is at least {least}, not {ticks}")
    if abs(ticks) >= LONGEST_SPAN:
        raise OverflowError(f"{what} is fewer than 2**62 ticks, not {ticks}")


def _refuse(rule: str, way_out: str = "See anabranch.model.lifetime for what there is.") -> NoReturn:
    error = UnsoundLifetimeError(rule)
    error.add_note(way_out)
    raise error


@dataclass(frozen=True, slots=True)
class Moment:
    """Where an image starts; made from `START` and `END`.

    >>> print(START, START + 5, START.floor(10), END)
    start start + 5 floor(start, 10) end
    """

    end: bool = False
    """It is the end of the event; nothing is added to it."""
    every: int = 1
    """The start of the event is moved down to a multiple of this."""
    plus: int = 0

    def __post_init__(self) -> None:
        _span(self.every, "the distance of multiples", least=1)
        _span(self.plus, "what is added to a start")
        if self.end and (self.every, self.plus) != (1, 0):
            _refuse("an image starts at the end of its event as it is", "Alter it again: ended, then shift.")

    def __add__(self, ticks: int) -> "Moment":
        return replace(self, plus=self.plus + ticks)

    @overload
    def __sub__(self, other: "Moment") -> "Length": ...
    @overload
    def __sub__(self, other: int) -> "Moment": ...
    def __sub__(self, other: "Moment | int") -> "Moment | Length":
        if not isinstance(other, Moment):
            return self + -other
        if (self, other) != (END, START):
            _refuse(f"a length is END - START, not {self} - ({other})", "Write END - START, and add ticks.")
        return Length()

    def floor(self, every: int) -> "Moment":
        """The last multiple of this many ticks that is not later."""
        if self.plus or self.every != 1:
            _refuse("only the start itself is moved down to a multiple", "Write START.floor(k) + c.")
        return replace(self, every=every)

    def __neg__(self) -> "Moment":
        return _refuse("a later start never has an earlier image (C1)")

    def __mul__(self, other: object) -> "Moment":
        return _refuse("the start of an image keeps its distance from that of its event (C1)")

    __rmul__ = __truediv__ = __floordiv__ = __mul__

    def __str__(self) -> str:
        if self.end:
            return "end"
        return _with("start" if self.every == 1 else f"floor(start, {self.every})", self.plus)


START, END = Moment(), Moment(end=True)


@dataclass(frozen=True, slots=True)
class Length:
    """How long an image lasts; made from a number of ticks, or from ``END - START``.

    >>> length = END - START
    >>> print(length, length + 5, length.at_most(5), Length.fixed(5))
    end - start end - start + 5 min(end - start, 5) 5
    """

    ticks: int | None = None
    """As many as these, `FOREVER` for no end, whatever the length of the event."""
    plus: int = 0
    """Else what is added to the length of the event."""
    most: int | None = None
    """No image lasts longer."""

    def __post_init__(self) -> None:
        if self.ticks != FOREVER and self.ticks is not None:
            _span(self.ticks, "what an image lasts", least=1)
        if self.most is not None:
            _span(self.most, "what an image lasts at most", least=1)
        _span(self.plus, "what is added to a length")

    @classmethod
    def fixed(cls, ticks: int) -> "Length":
        """This many ticks, or `FOREVER`."""
        return cls(ticks)

    def __add__(self, ticks: int) -> "Length":
        if self.most is not None or self.ticks is not None:
            _refuse("ticks are added to END - START alone", "Alter it twice: clip, then extend.")
        return replace(self, plus=self.plus + ticks)

    def __sub__(self, ticks: int) -> "Length":
        return self + -ticks

    def at_most(self, ticks: int) -> "Length":
        """The same, and never more than this."""
        if self.plus or self.most is not None or self.ticks is not None:
            _refuse("only END - START is at most something", "Alter it twice: extend, then clip.")
        return replace(self, most=ticks)

    def __neg__(self) -> "Length":
        return _refuse("a longer event has no shorter image (C2)")

    def __mul__(self, other: object) -> "Length":
        return _refuse("the end of an image keeps its distance from that of its event (C3)")

    __rmul__ = __truediv__ = __floordiv__ = __mul__

    def __str__(self) -> str:
        if self.ticks is not None:
            return tick_text(self.ticks)
        own = _with("end - start", self.plus)
        return own if self.most is None else f"min({own}, {self.most})"


@dataclass(frozen=True, slots=True)
class Lifetime:
    """What becomes of a lifetime: the start of the image and how long it lasts.

    >>> print(Lifetime.lasting(5), Lifetime.hop(10, 5), Lifetime.ended())
    [start, + 5) [floor(start, 5), + 10) [end, ∞)
    """

    start: Moment = START
    duration: Length = field(default_factory=Length)

    def __post_init__(self) -> None:
        if self.start.end and self.duration.ticks is None:
            _refuse("what starts where its event ends lasts a number of ticks, or FOREVER")

    @classmethod
    def of(cls, start: Moment = START, duration: Length | int | None = None) -> "Lifetime":
        """Any start with any duration: a number of ticks, `FOREVER`, or what is made from ``END - START``."""
        if not isinstance(start, Moment):
            _refuse(f"a start is made from START or END, {start!r} is not (C1)")
        if isinstance(duration, Length):
            return cls(start, duration)
        return cls(
            start, Length() if duration is None else Length.fixed(checked_tick(duration, "a duration"))
        )

    @classmethod
    def lasting(cls, ticks: int) -> "Lifetime":
        """[s, s + ticks): the moving window of the paper, W."""
        return cls(START, Length.fixed(ticks))

    @classmethod
    def hop(cls, size: int, every: int) -> "Lifetime":
        """[w, w + size), where w is the last multiple of ``every`` at or before the start.

        Windows of ``size`` ticks begin at every multiple of ``every``; an event is in those that hold its
        start. Its image is the last of them, the one from w. So what is there at a time t in the hop
        [h, h + every) are the events with h - size < w <= h, which is to say with a start in
        [h + every - size, h + every): **each hop shows the one window that ends with it**, whole as soon as
        that is over, and a window is seen during its last hop. That needs ``size`` to be a multiple of
        ``every``: with 5 and 2 every other snapshot would hold 6 ticks. A window of one hop, `tumble`, is
        seen as long as it lasts.

        The paper only says that hopping windows are had by integer division of the start.

        >>> print(Lifetime.hop(60, 10))
        [floor(start, 10), + 60)
        """
        _span(size, "the size of a window", least=1)
        _span(every, "the distance of windows", least=1)
        if size % every:
            error = ValueError(f"the size of a window is a multiple of its hop, {size} is none of {every}")
            error.add_note("Else what is there at a time is not one window, but a part of another too.")
            error.add_note("If that is meant: Lifetime.of(START.floor(every), size).")
            raise error
        return cls(START.floor(every), Length.fixed(size))

    @classmethod
    def tumble(cls, size: int) -> "Lifetime":
        """[w, w + size), where w is the last multiple of ``size`` at or before the start."""
        return cls.hop(size, size)

    @classmethod
    def shift(cls, ticks: int) -> "Lifetime":
        """[s + ticks, e + ticks)."""
        return cls(START + ticks)

    @classmethod
    def extend(cls, ticks: int) -> "Lifetime":
        """[s, e + ticks); with a negative number events get shorter, and some vanish."""
        return cls(START, Length(plus=ticks))

    @classmethod
    def clip(cls, ticks: int) -> "Lifetime":
        """[s, min(e, s + ticks))."""
        return cls(START, Length(most=ticks))

    @classmethod
    def started(cls) -> "Lifetime":
        """[s, ∞): all that has begun, *inserts* in the paper."""
        return cls(START, Length.fixed(FOREVER))

    @classmethod
    def ended(cls) -> "Lifetime":
        """[e, ∞) of events that have an end: all that is over, *deletes* in the paper."""
        return cls(END, Length.fixed(FOREVER))

    @property
    def moves_start(self) -> bool:
        """Some images do not start where their events start."""
        return self.start != START

    @property
    def follows_end(self) -> bool:
        """Some revisions of an end change an image; else only removals do."""
        return self.start.end or (self.duration.ticks is None and self.duration.most != 1)

    @property
    def keeps_starts_apart(self) -> bool:
        """Images of events with different starts have different starts, in the same order."""
        return not self.start.end and self.start.every == 1

    @property
    def keeps_sync(self) -> bool:
        """The sync time of what comes out is a monotone function of that of what came in."""
        return not self.follows_end or (self.keeps_starts_apart and self.duration.plus == 0)

    def longest(self, of: int | None) -> int | None:
        """No image lasts longer, where no event lasts longer than this; None: nobody knows.

        >>> Lifetime.lasting(5).longest(None), Lifetime.extend(5).longest(7), Lifetime.extend(5).longest(None)
        (5, 12, None)
        """
        length = self.duration
        if length.ticks is not None:
            return None if length.ticks == FOREVER else length.ticks
        own = None if of is None else max(of + length.plus, 0)
        known = [most for most in (own, length.most) if most is not None]
        return min(known, default=None)

    def properties(self, of: Properties) -> Properties:
        """What is true of the images of a stream of which this is true.

        >>> str(Lifetime.tumble(5).properties(Properties.of("ordered", "kept", "keyed")))
        'insert only, ordered, shrinking, kept, perfect'
        """
        insert_only = Fact.INSERT_ONLY in of or (Fact.KEPT in of and not self.follows_end)
        in_order = self.keeps_sync or (Fact.INSERT_ONLY in of and not self.start.end)
        stays = {Fact.PUNCTUATED, Fact.COMPLETE}
        if in_order:
            stays |= {Fact.ORDERED}
            if self.keeps_starts_apart:
                stays |= {Fact.STRICTLY_INCREASING, Fact.DETERMINISTIC_TIES}
            elif Fact.ORDERED in of:  # those of one image start follow each other as they do everywhere
                stays |= {Fact.DETERMINISTIC_TIES}
        if self.keeps_starts_apart:
            stays |= {Fact.KEYED}
            if self.duration.ticks is None and self.duration.plus <= 0:
                stays |= {Fact.DISJOINT, Fact.CLOSED}
        if not self.start.end:
            stays |= {Fact.SHRINKING}
            if self.duration.plus >= 0:
                stays |= {Fact.KEPT}
        made = {Fact.INSERT_ONLY} if insert_only else set()
        if self.start.end or not self.follows_end:
            made |= {Fact.SHRINKING}
        kept = of.keep(*stays)
        return Properties(kept.facts | made, kept.key, self.longest(of.longest))

    def __str__(self) -> str:
        length = self.duration
        if length.ticks == FOREVER:
            return f"[{self.start}, ∞)"
        if self.keeps_starts_apart and length.ticks is None and length.most is None:
            return f"[{self.start}, {_with('end', self.start.plus + length.plus)})"
        return f"[{self.start}, + {length})"
