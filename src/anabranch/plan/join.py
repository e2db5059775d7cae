"""Pairs of events of two streams with equal keys and starts that are near."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any, ClassVar, TypeAlias, get_args

import pyarrow as pa

from anabranch.expressions.evaluation import type_of
from anabranch.expressions.text import text
from anabranch.expressions.tree import Tree
from anabranch.expressions.wire import exact_text
from anabranch.kernels.join.band import At, Band
from anabranch.kernels.join.join import PORTS
from anabranch.kernels.join.join import Join as Kernel
from anabranch.kernels.join.terms import How, Terms
from anabranch.kernels.kernel import State
from anabranch.model.clock import check_unit, in_ticks, length_text
from anabranch.model.clock_columns import clock_of
from anabranch.model.properties import Fact, Properties
from anabranch.model.span import signed_span
from anabranch.model.spelling import did_you_mean
from anabranch.plan.node import Node, PlanError, require

Keys: TypeAlias = str | Sequence[str] | Mapping[str, str] | None
Within: TypeAlias = int | timedelta | str | tuple[int | timedelta | str, int | timedelta | str]


@dataclass(frozen=True, kw_only=True, eq=False)
class Join(Node):
    """Every pair of a left and a right event that is near and equal enough, as a point."""

    word: ClassVar[str] = "join"

    on: tuple[tuple[str, str], ...]
    band: Band
    how: How = "inner"
    where: Tree | None = None
    at: At = "later"
    starts: tuple[str | None, str | None] = (None, None)
    suffix: str = field(default="_right")

    @property
    def ports(self) -> tuple[str, ...]:
        """Left and right."""
        return PORTS

    def check(self) -> None:
        """Raise where nothing could be paired, nothing would ever be forgotten, or names are not clear."""
        if self.band.before + self.band.after < 0:
            clock = clock_of(self.clock)
            first, last = (length_text(ticks, clock) for ticks in (-self.band.before, self.band.after))
            error = PlanError(
                f"right events would start from {first} to {last} after left ones, which is never: "
                "the first is later than the second"
            )
            error.add_note("Both ends of within=(before, after) count away from the left: before backwards.")
            raise error
        self._check_keys()
        self._check_names()
        for name, node in zip(PORTS, self.inputs, strict=True):
            require(
                node,
                Fact.PUNCTUATED,
                f"the {name} of a join",
                "says until when events of the other side are kept",
                "Give the source disorder=…, or stables in its rows.",
            )
        if self.how in ("left", "anti"):
            require(
                self.inputs[1],
                Fact.COMPLETE,
                f"that an event has no match, as how={self.how!r} says,",
                "is known where nothing of the right is missing",
                "Merge the replicas of the right first, or use how='inner' or 'semi', which do not mind.",
            )
        if self.where is not None:
            kind = type_of(self.where, self.terms.pair)
            if not pa.types.is_boolean(kind):
                error = PlanError(f"a condition is true or false, {text(self.where)} is {kind}")
                error.add_note("Compare it with something, for example col('price') < col('limit').")
                raise error

    def _check_keys(self) -> None:
        for pair in self.on:
            for side, (name, node) in enumerate(zip(pair, self.inputs, strict=True)):
                if name not in node.schema.names:
                    known = node.schema.names
                    error = PlanError(
                        f"there is no column {name!r} in the {PORTS[side]} of a join"
                        f"{did_you_mean(name, known)}"
                    )
                    error.add_note(f"Its columns are {', '.join(map(repr, known))}.")
                    raise error
            left, right = (node.schema.field(name).type for name, node in zip(pair, self.inputs, strict=True))
            _check_numbers(pair, left, right)
            if _sort(left) != _sort(right):
                error = PlanError(
                    f"keys of one sort can be equal; {pair[0]!r} is {left}, {pair[1]!r} of the right {right}"
                )
                error.add_note(
                    f"Cast one of them: with_columns({pair[1]}=col({pair[1]!r}).cast({str(left)!r}))."
                )
                raise error

    def _check_names(self) -> None:
        if self.how in ("semi", "anti") and (self.at != "later" or self.starts != (None, None)):
            error = PlanError(
                f"with how={self.how!r} an event of the left comes out, at its start and with its columns; "
                "at and starts are of pairs"
            )
            error.add_note("Leave them out, or use how='inner'.")
            raise error
        names = self.terms.pair.names
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            error = PlanError(
                f"a name stands for one column, a pair would have two that are called {twice[0]!r}"
            )
            error.add_note("Give another suffix, other names for starts, or rename a column before.")
            raise error

    @cached_property
    def terms(self) -> Terms:
        """What the kernel is told."""
        left, right = (node.schema for node in self.inputs)
        same = {other for one, other in self.on if one == other}
        names = tuple(
            (name, name + self.suffix if name in left.names else name)
            for name in right.names
            if name not in same
        )
        return Terms(
            left, right, self.on, self.band, self.how, self.at, self.where, names, self.starts, self.clock
        )

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of both, and of the starts; of a semi or anti join those of the left."""
        return self.terms.output

    @cached_property
    def properties(self) -> Properties:
        """Points, inserted only where no event of either side is removed; a key where starts can be told."""
        left, right = (node.properties for node in self.inputs)
        facts = {Fact.PUNCTUATED, Fact.SHRINKING} | ({Fact.COMPLETE} & left.facts & right.facts)
        if Fact.KEPT in left and Fact.KEPT in right:
            facts.add(Fact.INSERT_ONLY)
        key = self._key()
        return Properties(frozenset(facts), key, 1)

    def _key(self) -> tuple[str, ...] | None:
        """Columns that, with the time of a result, say which events it is of."""
        sides = [node.properties for node in self.inputs]
        whole = [
            tuple(node.schema.names) if side.key is None else side.key
            for node, side in zip(self.inputs, sides, strict=True)
        ]
        if Fact.KEYED not in sides[0]:
            return None
        if self.how in ("semi", "anti"):
            return whole[0]
        if Fact.KEYED not in sides[1]:
            return None
        called = {other: one for one, other in self.on} | dict(self.terms.names)
        fixed = self.band.before + self.band.after == 0 and (self.how == "inner" or self.band.before == 0)
        starts = []
        for name, side in zip(self.starts, PORTS, strict=True):
            if fixed or self.at == side:
                continue
            if name is None:
                return None
            starts.append(name)
        return tuple(dict.fromkeys([*whole[0], *(called[name] for name in whole[1]), *starts]))

    def operator(self, state: State | None = None) -> Kernel:
        """The kernel."""
        removable = [Fact.KEPT not in node.properties for node in self.inputs]
        may = removable[0], removable[1]
        return Kernel(self.terms, may) if state is None else Kernel.load(state, self.terms, may)

    def meets(self) -> tuple[tuple[str, ...] | None, ...]:
        """Equal keys; all rows, where there are none."""
        return tuple(name for name, _ in self.on), tuple(name for _, name in self.on)

    def rests_on_absence(self) -> tuple[bool, ...]:
        """An event of the left whose match is missing comes out as one that has none."""
        return False, self.how in ("left", "anti")

    def traced(self, columns: tuple[str, ...]) -> tuple[str, ...] | None:
        """Columns of the left, which stay as they are."""
        return columns if {*columns} <= {*self.inputs[0].schema.names} else None

    def settings(self) -> dict[str, str]:
        """All of it: what is kept, and what comes out, depends on it."""
        return {
            "on": str([list(pair) for pair in self.on]),
            "within": f"{self.band.before}, {self.band.after}",
            "how": self.how,
            "at": self.at,
            "where": "" if self.where is None else text(self.where),
            "where, exactly": "" if self.where is None else exact_text(self.where),
            "columns": str(list(self.schema.names)),
            "starts": str(list(self.starts)),
        }

    def words(self) -> str:
        """On what, how near, and how."""
        keys = ", ".join(one if one == other else f"{one} = {other}" for one, other in self.on)
        near = [length_text(ticks, clock_of(self.clock)) for ticks in (self.band.before, self.band.after)]
        parts = ["join" if self.how == "inner" else f"{self.how} join", *([f"on {keys}"] if keys else [])]
        parts.append(f"within {near[0]} before and {near[1]} after")
        return " ".join([*parts, *([] if self.where is None else [f"where {text(self.where)}"])])


def keys_of(on: Keys) -> tuple[tuple[str, str], ...]:
    """Pairs of columns that are equal, as people write them.

    >>> keys_of("id"), keys_of({"bidder": "id"}), keys_of(None)
    ((('id', 'id'),), (('bidder', 'id'),), ())
    """
    if on is None:
        return ()
    if isinstance(on, str):
        return ((on, on),)
    if isinstance(on, Mapping):
        return tuple(on.items())
    return tuple((name, name) for name in on)


def band_of(within: Within | None, clock: pa.DataType | None) -> Band:
    """How near starts are; one length is meant both ways."""
    if within is None:
        error = PlanError("a join is of events that are near in time, and within is not given")
        error.add_note("Write within=(before, after), or within=0 where starts are equal.")
        error.add_note("There is no join yet of events whose lifetimes overlap.")
        raise error
    both: tuple[Any, Any] = within if isinstance(within, tuple) else (within, within)
    if len(both) != 2:
        raise PlanError(f"within is (before, after), not {within!r}")
    before, after = (_ticks(one, clock, what) for one, what in zip(both, _WHAT, strict=True))
    return Band(before, after)


def _ticks(given: Any, clock: pa.DataType | None, what: str) -> int:
    length, known = signed_span(given, what), clock_of(clock)
    check_unit(length, known, what)
    return in_ticks(length, known, what)


_WHAT = ("how long before", "how long after")


def starts_of(starts: tuple[str | None, str | None] | None) -> tuple[str | None, str | None]:
    """The names of the columns of starts."""
    if starts is None:
        return None, None
    if isinstance(starts, str) or len(starts) != 2:
        raise PlanError(f"starts are two names, of the left's and the right's, not {starts!r}")
    return starts[0], starts[1]


def check_stream(right: object, kind: type) -> None:
    """Raise where what is joined is no stream."""
    if not isinstance(right, kind):
        error = TypeError(f"a stream is joined with a stream, not with {right!r:.200}")
        error.add_note("Replicas are merged first: write .merge() after them.")
        raise error


def check_words(how: str, at: str) -> None:
    """Raise where a word is none of those that are known."""
    for what, word, known in (("how", how, get_args(How)), ("at", at, get_args(At))):
        if word not in known:
            meant = did_you_mean(word, known)
            raise PlanError(f"{what} is one of {', '.join(map(repr, known))}, not {word!r}{meant}")


def _check_numbers(pair: tuple[str, str], left: pa.DataType, right: pa.DataType) -> None:
    """Raise where equal numbers would not meet: a fraction is a float or a decimal, and these two differ."""
    kinds = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in (left, right)]
    exact = [pa.types.is_decimal(kind) or pa.types.is_uint64(kind) for kind in kinds]
    floats = [pa.types.is_floating(kind) for kind in kinds]
    if not (any(exact) and any(floats)):
        return
    side = exact.index(True)
    name = pair[side]
    error = PlanError(
        f"{pair[0]!r} of the left is {left} and {pair[1]!r} of the right is {right}: equal numbers of these "
        f"types do not always match as keys; cast {name!r} of the {PORTS[side]} to {kinds[1 - side]}"
    )
    error.add_note(
        f"Write with_columns({name}=col({name!r}).cast({_FLOATS[kinds[1 - side]]!r})) before the join."
    )
    raise error


_FLOATS = {pa.float16(): "float16", pa.float32(): "float32", pa.float64(): "float64"}


def _sort(kind: pa.DataType) -> str:
    """Values of one sort can be equal, of whatever type."""
    if pa.types.is_dictionary(kind):
        return _sort(kind.value_type)
    sorts: dict[str, tuple[Any, ...]] = {
        "number": (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
        "text": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
        "binary": (
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_binary_view,
            pa.types.is_fixed_size_binary,
        ),
        "date": (pa.types.is_date,),
        "time": (pa.types.is_time,),
        "duration": (pa.types.is_duration,),
    }
    found = next((name for name, tests in sorts.items() if any(test(kind) for test in tests)), None)
    if pa.types.is_timestamp(kind):
        return "instant" if kind.tz is not None else "local time"
    return str(kind) if found is None else found
