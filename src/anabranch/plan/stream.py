"""What plans are built with: a stream, and the operators over it as methods.

A stream is a frozen description. Nothing runs until it is opened (`Stream.open`), run (`anabranch.run`) or
made a frame of Spark's (`anabranch.spark.frame`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Literal, NoReturn, TypeAlias

import pyarrow as pa

from anabranch.expressions.expression import Expression, expression
from anabranch.kernels.aggregate.window_times import WindowTimes
from anabranch.kernels.join.band import At
from anabranch.kernels.join.terms import How
from anabranch.kernels.rows import RowWindows
from anabranch.kernels.session import Sessions
from anabranch.model.clock import check_unit, in_ticks
from anabranch.model.clock_columns import clock_of
from anabranch.model.lifetime import START, Length, Lifetime, Moment
from anabranch.model.other_names import OF_STREAMS, no_attribute
from anabranch.model.properties import Properties
from anabranch.model.span import signed_span, span_text
from anabranch.model.spelling import did_you_mean
from anabranch.model.validity import Policy
from anabranch.plan.alter_lifetime import AlterLifetime
from anabranch.plan.distinct import Distinct
from anabranch.plan.explain import explained
from anabranch.plan.final import Final
from anabranch.plan.graph import Graph
from anabranch.plan.join import Join, Keys, Within, band_of, check_stream, check_words, keys_of, starts_of
from anabranch.plan.line import users_line
from anabranch.plan.node import Node, PlanError
from anabranch.plan.picture import picture
from anabranch.plan.row_operators import RowOperators
from anabranch.plan.sort import Sort
from anabranch.plan.source import Source
from anabranch.plan.tap import Tap, taps_below
from anabranch.plan.windowed import Windowed

if TYPE_CHECKING:
    from anabranch.engines.embedded.job import Job

Span: TypeAlias = int | timedelta | str


@dataclass(frozen=True, slots=True, repr=False)
class Stream(RowOperators):
    """A stream of events, as a plan makes it."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(no_attribute("a stream", name, dir(Stream), OF_STREAMS))

    @property
    def schema(self) -> pa.Schema:
        """The columns of its payloads."""
        return self.node.schema

    @property
    def properties(self) -> Properties:
        """What may be relied on."""
        return self.node.properties

    def __repr__(self) -> str:
        return f"<Stream: {self.node.words()}>"

    def lasting(self, span: Span) -> "Stream":
        """[s, s + span): every event lasts as long, from its start."""
        return self._altered("lasting", Lifetime.lasting, {"how long events last": span})

    def hop(self, size: Span, every: Span) -> "Stream":
        """[w, w + size), where w is the last multiple of ``every`` at or before the start."""
        return self._altered("hop", Lifetime.hop, {"the size of windows": size, "their hop": every})

    def tumble(self, size: Span) -> "Stream":
        """[w, w + size), where w is the last multiple of ``size`` at or before the start."""
        return self._altered("tumble", Lifetime.tumble, {"the size of windows": size})

    def shift(self, span: Span) -> "Stream":
        """[s + span, e + span)."""
        return self._altered("shift", Lifetime.shift, {"a shift": span})

    def extend(self, span: Span) -> "Stream":
        """[s, e + span); with a negative span events get shorter, and some vanish."""
        return self._altered("extend", Lifetime.extend, {"an extension": span})

    def clip(self, span: Span) -> "Stream":
        """[s, min(e, s + span))."""
        return self._altered("clip", Lifetime.clip, {"the longest lifetime": span})

    def started(self) -> "Stream":
        """[s, ∞): all that has begun."""
        return self._altered("started", Lifetime.started)

    def ended(self) -> "Stream":
        """[e, ∞) of events that have an end: all that is over."""
        return self._altered("ended", Lifetime.ended)

    def alter_lifetime(self, start: Moment = START, duration: "Length | Span | None" = None) -> "Stream":
        """Any start with any duration of which something can be promised.

        ``start`` is made of `anabranch.START` or is `anabranch.END`; ``duration`` is a span, or made of
        ``END - START``: with ticks added, or at most some.
        """
        with users_line().named():
            if duration is not None and not isinstance(duration, Length):
                duration = self._ticks(duration, "a duration")
            lifetime = Lifetime.of(start, duration)
        return self._lived(lifetime, f"alter_lifetime {lifetime}")

    def join(
        self,
        right: "Stream",
        on: Keys = None,
        *,
        within: Within | None = None,
        how: How = "inner",
        where: Expression | None = None,
        at: At = "later",
        starts: tuple[str | None, str | None] | None = None,
        suffix: str = "_right",
    ) -> "Stream":
        """Pairs with an event of another stream that has equal keys and starts near, as points.

        ``on`` are columns that both have, or a mapping of this stream's to the other's; a null is equal to
        nothing. ``within`` is (before, after): the other starts no more than so long before this one and no
        more than so long after it; 0 is equal starts. ``where`` is true of the columns of a pair: those of
        the right that the left has too get the suffix, keys of one name are there once. A pair stands ``at``
        the later start, the earlier one, the left's or the right's; ``starts`` names columns that have both.

        ``how="left"`` adds the events of the left that have no match, ``"semi"`` gives those with one, and
        ``"anti"`` those without, as points at their start; that there is none is known once the right
        is stable beyond it.

        >>> import anabranch as ab
        >>> bids = ab.source("bids", {"item": "string", "price": "int64"})
        >>> asks = ab.source("asks", {"item": "string", "least": "int64"})
        >>> deals = bids.join(asks, on="item", within=(5, 0), where=ab.col("price") >= ab.col("least")).open()
        >>> deals.push("asks", [ab.Insert({"item": "pen", "least": 3}, 10, 11)])
        []
        >>> deals.push("bids", [ab.Insert({"item": "pen", "price": 4}, 12, 13)])
        [Insert(payload={'item': 'pen', 'price': 4, 'least': 3}, start=12, end=13)]
        """
        with users_line().named():
            check_stream(right, Stream)
            check_words(how, at)
            band = band_of(within, self.node.clock)
            names = starts_of(starts)
        return Stream(
            Join(
                inputs=(self.node, right.node),
                on=keys_of(on),
                band=band,
                how=how,
                where=None if where is None else expression(where).tree,
                at=at,
                starts=names,
                suffix=suffix,
            )
        )

    def distinct(self, *columns: str) -> "Stream":
        """Of point events that are equal on these columns (none: on all) and start together one.

        Where they differ in other columns it is the one of the least identity, whatever comes first.
        """
        return Stream(Distinct(inputs=(self.node,), columns=columns or tuple(self.node.schema.names)))

    def window(
        self,
        size: Span,
        every: Span | None = None,
        *,
        lifetime: Literal["window", "slide"] = "window",
        start: str | None = None,
        end: str | None = None,
    ) -> Windowed:
        """Windows [w * every, w * every + size) of what starts in them, for ``group_by`` and ``agg``.

        ``every`` is the size unless it is given. What is said of a window lasts as long as the window, or
        with ``lifetime="slide"`` for its last slide; ``start`` and ``end`` name columns for its bounds.
        """
        with users_line().named():
            if lifetime not in ("window", "slide"):
                meant = did_you_mean(lifetime, ("window", "slide"))
                raise PlanError(f"the lifetime of a window is 'window' or 'slide', not {lifetime!r}{meant}")
            ticks = self._ticks(size, "the size of windows")
            hop = ticks if every is None else self._ticks(every, "their hop")
        return Windowed(self.node, WindowTimes(ticks, hop, lifetime == "slide"), start, end)

    def session(self, gap: Span, *, start: str | None = None, end: str | None = None) -> Windowed:
        """Sessions of what starts less than ``gap`` after another, for ``group_by`` and ``agg``.

        A session is [first start, last start + gap); ``start`` and ``end`` name columns for its bounds.
        """
        with users_line().named():
            ticks = self._ticks(gap, "the gap of sessions")
        return Windowed(self.node, Sessions(ticks), start, end)

    def rows(
        self, size: int, every: int | None = None, *, start: str | None = None, end: str | None = None
    ) -> Windowed:
        """Windows of ``size`` rows of each group, from every ``every``-th row on (``size``, unless given).

        Rows are in the order of their starts, and of one start by their identity. A window lasts from the
        start of its first row until just after that of its last; ``start`` and ``end`` name columns for them.
        """
        return Windowed(self.node, RowWindows(size, size if every is None else every), start, end)

    def sort(self) -> "Stream":
        """The same elements in the order of their times, each once the stable has passed it."""
        return Stream(Sort(inputs=(self.node,)))

    def final(self, *, ordered: bool = False) -> "Stream":
        """Every event once it can never change, as an insert; ``ordered``: in order of start."""
        return Stream(Final(inputs=(self.node,), ordered=ordered))

    def tap(self, name: str) -> "Stream":
        """The same stream, which is an output too, by this name."""
        return Stream(Tap(inputs=(self.node,), name=name))

    def explain(self) -> str:
        """The plan in words: operators, what is known of what comes of each, and why it is done so."""
        return explained({"": self.node})

    def picture(self) -> str:
        """The plan as a picture, SVG."""
        return picture({"": self.node})

    def _repr_svg_(self) -> str:
        return self.picture()

    def open(
        self,
        state: bytes | None = None,
        *,
        on_invalid: Policy | None = None,
        on_broken: Policy | None = None,
        on_late: Policy | None = None,
    ) -> "Job":
        """The plan, ready to be pushed to in this process; with ``state`` as `Job.dump` left it."""
        embedded = import_module("anabranch.engines.embedded.job")
        return embedded.open(self, state, on_invalid=on_invalid, on_broken=on_broken, on_late=on_late)

    def _altered(
        self, word: str, lifetime: Callable[..., Lifetime], spans: Mapping[str, Span] | None = None
    ) -> "Stream":
        """Lifetimes that some spans make, each with what it is."""
        given = spans or {}
        with users_line().named():
            altered = lifetime(*(self._ticks(span, what) for what, span in given.items()))
        return self._lived(altered, f"{word}({', '.join(map(_as_written, given.values()))})")

    def _lived(self, lifetime: Lifetime, called: str) -> "Stream":
        return Stream(AlterLifetime(inputs=(self.node,), lifetime=lifetime, called=called))

    def _ticks(self, given: Span, what: str) -> int:
        """A length in ticks; a number is one where times are numbers, and has no unit where they are not."""
        length, clock = signed_span(given, what), clock_of(self.node.clock)
        check_unit(length, clock, what)
        return in_ticks(length, clock, what)


def _as_written(length: Span) -> str:
    return repr(span_text(length) if isinstance(length, timedelta) else length)


def outputs_of(given: "Stream | Mapping[str, Stream]") -> dict[str, Node]:
    """The streams of a plan that come out, by name, with those that are tapped."""
    if isinstance(given, Stream):
        streams = {"": given}
    elif isinstance(given, Mapping):
        streams = dict(given)
    else:
        raise _no_output(given)
    for name, stream in streams.items():
        if not isinstance(stream, Stream):
            raise _no_output(stream)
        if not isinstance(given, Stream) and (not isinstance(name, str) or not name):
            raise PlanError(f"an output has a name, {name!r} is none")
    if not streams:
        raise PlanError("a plan has an output or more, and there is none")
    outputs = {name: stream.node for name, stream in streams.items()}
    for name, node in taps_below(*outputs.values()):
        if outputs.setdefault(name, node) is not node:
            error = PlanError(f"an output has a name of its own, one and a tap are called {name!r}")
            error.add_note("Tap it under another name.")
            node.line.note(error)
            raise error
    check_sources(outputs.values())
    return outputs


def check_sources(outputs: Iterable[Node]) -> None:
    """Raise where two sources of a plan that are not alike have one name."""
    seen: dict[str, Node] = {}
    for node in Graph(outputs).nodes:
        if isinstance(node, Source) and seen.setdefault(node.name, node) is not node:
            error = PlanError(f"a source has a name of its own, two unlike ones are called {node.name!r}")
            error.add_note("Give one of them another name, or build on the same source twice.")
            node.line.note(error)
            raise error


def _no_output(given: object) -> Exception:
    error: Exception
    if isinstance(given, RowOperators):
        error = PlanError(f"replicas are merged before they come out, and {given.node.words()} is not")
        error.add_note("Write .merge() after it.")
    else:
        error = TypeError(f"what comes out is a stream, or a mapping of names to streams, not {given!r:.200}")
    return error
