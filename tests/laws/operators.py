"""Every operator of plans beside its meaning: what the laws of plans range over.

A row gives an operator over streams, drawn from a seed, with two functions of the bags of its inputs and of
how far each is stable: the bag of its output, and how far that is stable. A bag is a list of (payload, start,
end), the payload as sorted pairs of name and value.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

import anabranch as ab
from anabranch import Fact
from anabranch.model.identity import identities
from anabranch.model.lifetime import Lifetime
from anabranch.model.time import FOREVER
from anabranch.oracle import alter_lifetime, cleanse, join
from anabranch.oracle import rows as row_windows
from anabranch.oracle import session as sessions
from anabranch.oracle import window as windows
from anabranch.oracle.aggregates import first, greatest, last, least, n_unique, top_k, total
from anabranch.oracle.alter_lifetime import altered
from anabranch.oracle.cleanse import cleansed
from anabranch.oracle.distinct import distinct
from anabranch.oracle.join import Terms, joined
from anabranch.oracle.rows import rows
from anabranch.oracle.session import session
from anabranch.oracle.sort import cut_at
from anabranch.oracle.window import window
from anabranch.plan.stream import Stream

SCHEMA = {"value": "string", "n": "int64", "x": "int64"}
Bag: TypeAlias = list[tuple[tuple[tuple[str, Any], ...], int, int]]
Meaning: TypeAlias = Callable[[Sequence[Bag], Sequence[int]], Bag]
"""Of the bags of the inputs and how far each is stable, the bag of the output."""
Promise: TypeAlias = Callable[[Sequence[Bag], Sequence[int]], int]
"""Of the same, how far the output is stable."""
Agreement: TypeAlias = Callable[["Counter[Any]", "Counter[Any]", int], bool]
"""Whether the output is what is meant, where it is stable until a time."""


def _least(bags: Sequence[Bag], frontiers: Sequence[int]) -> int:
    """The output is stable where all inputs are."""
    return min(frontiers)


def _exactly(output: "Counter[Any]", meant: "Counter[Any]", frontier: int) -> bool:
    return output == meant


def _until_the_frontier(output: "Counter[Any]", meant: "Counter[Any]", frontier: int) -> bool:
    """What is beyond the frontier may be missing or be different."""
    return cut_at(output.elements(), frontier) == cut_at(meant.elements(), frontier)


def _no_further(output: "Counter[Any]", meant: "Counter[Any]", frontier: int) -> bool:
    """The output is right until the frontier, and nothing in it starts later."""
    known = all(start < frontier for _, start, _ in output)
    return known and _until_the_frontier(output, meant, frontier)


@dataclass(frozen=True)
class Drawn:
    """An operator over streams, and what it means after every push."""

    stream: Stream
    meaning: Meaning
    promise: Promise = _least
    agrees: Agreement = _exactly


@dataclass(frozen=True)
class Operator:
    """What may be drawn for some streams of the columns of `SCHEMA`, any of which may be null."""

    name: str
    draw: Callable[[Random, Sequence[Stream]], Drawn]
    inputs: int = 1
    waits: bool = False
    """What comes out depends on how far the input is stable, not only on its events."""


def _rows(change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> Meaning:
    """What is done to each payload by itself; None: the event is left out."""

    def meaning(bags: Sequence[Bag], frontiers: Sequence[int]) -> Bag:
        found = [(change(dict(payload)), start, end) for payload, start, end in bags[0]]
        return [(_key(payload), start, end) for payload, start, end in found if payload is not None]

    return meaning


def _key(payload: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((name, value) for name, value in payload.items() if value is not None))


def _filter(random: Random, streams: Sequence[Stream]) -> Drawn:
    least, value = random.randint(0, 4), random.choice("abc")
    predicate, holds = random.choice(
        [
            (
                (ab.col("n") > least) | (ab.col("value") == value),
                lambda row: row.get("n", least) > least or row.get("value") == value,
            ),
            (ab.col("x").is_null(), lambda row: row.get("x") is None),
            (ab.col("x") <= ab.col("n"), lambda row: "x" in row and "n" in row and row["x"] <= row["n"]),
        ]
    )
    return Drawn(streams[0].filter(predicate), _rows(lambda row: row if holds(row) else None))


def _select(random: Random, streams: Sequence[Stream]) -> Drawn:
    by = random.randint(1, 3)
    return Drawn(
        streams[0].with_columns(n=ab.col("n") % by + 1),
        _rows(lambda row: {**row, "n": row["n"] % by + 1} if "n" in row else row),
    )


def _collapse(random: Random, streams: Sequence[Stream]) -> Drawn:
    kept = random.choice(["value", "x"])
    none = ab.lit(None, "string" if kept == "x" else "int64")
    columns = {"value": none, "x": none} | {kept: ab.col(kept), "n": ab.lit(1, "int64")}
    return Drawn(
        streams[0].select(**columns),
        _rows(lambda row: {"n": 1} | ({kept: row[kept]} if kept in row else {})),
    )


def _rename(random: Random, streams: Sequence[Stream]) -> Drawn:
    """Two columns have each other's names."""
    swapped = streams[0].rename({"n": "x", "x": "n"})
    names = {"n": "x", "x": "n", "value": "value"}
    return Drawn(swapped, _rows(lambda row: {names[name]: value for name, value in row.items()}))


def _apply(random: Random, streams: Sequence[Stream]) -> Drawn:
    def double(rows):
        doubled = pc.multiply(rows.column("n"), 2)
        return {"value": rows.column("value"), "n": doubled, "x": rows.column("x")}

    return Drawn(
        streams[0].apply(double, SCHEMA, keeps=["value", "x"]),
        _rows(lambda row: {**row, "n": 2 * row["n"]} if "n" in row else row),
    )


def _alter(random: Random, streams: Sequence[Stream]) -> Drawn:
    ticks, every = random.randint(1, 6), random.randint(1, 4)
    stream = streams[0]
    lifetime, drawn = random.choice(
        [
            (Lifetime.lasting(ticks), lambda: stream.lasting(ticks)),
            (Lifetime.hop(every * ticks, every), lambda: stream.hop(every * ticks, every)),
            (Lifetime.tumble(ticks), lambda: stream.tumble(ticks)),
            (Lifetime.shift(ticks - 3), lambda: stream.shift(ticks - 3)),
            (Lifetime.extend(ticks - 3), lambda: stream.extend(ticks - 3)),
            (Lifetime.clip(ticks), lambda: stream.clip(ticks)),
            (Lifetime.started(), stream.started),
            (Lifetime.ended(), stream.ended),
        ]
    )
    return Drawn(
        drawn(),
        lambda bags, frontiers: altered(bags[0], lifetime),
        lambda bags, frontiers: alter_lifetime.frontier(frontiers[0], lifetime),
    )


def _union(random: Random, streams: Sequence[Stream]) -> Drawn:
    return Drawn(ab.union(*streams), lambda bags, frontiers: [row for bag in bags for row in bag])


def _join(hows: Sequence[str]) -> Callable[[Random, Sequence[Stream]], Drawn]:
    """Pairs with equal values that are near, or what has such a pair, or none."""

    def draw(random: Random, streams: Sequence[Stream]) -> Drawn:
        how, before = random.choice(hows), random.randint(-2, 3)
        after, most = random.randint(-before, 3), random.choice([None, 0, 2])
        at = random.choice(["later", "earlier", "left", "right"]) if how in ("inner", "left") else "later"
        on = random.choice([["value"], ["value"], ["value", "n"]])
        other = "n" if "n" in on else "n_right"
        where = None if most is None else ab.col("n") <= ab.col(other) + most
        pairs = streams[0].join(streams[1], on, within=(before, after), how=how, where=where, at=at)
        terms = Terms(
            [(name, name) for name in on],
            before,
            after,
            how,
            at,
            lambda pair: most is None or ("n" in pair and other in pair and pair["n"] <= pair[other] + most),
            {name: "" if name in on else f"{name}_right" for name in SCHEMA},
        )
        paired = "x_right" in pairs.schema.names
        given = "x_right" if paired and random.random() < 0.7 else "x"
        names = {"value": "value", "n": "n", given: "x"}
        return Drawn(
            pairs.select("value", "n", x=ab.col(given)),
            lambda bags, frontiers: [
                (_key({names[name]: value for name, value in dict(payload).items() if name in names}), *times)
                for payload, *times in joined(*bags, terms, frontiers[1])
            ],
            lambda bags, frontiers: join.frontier(*frontiers, terms),
        )

    return draw


def _distinct(random: Random, streams: Sequence[Stream]) -> Drawn:
    def meaning(bags: Sequence[Bag], frontiers: Sequence[int]) -> Bag:
        return distinct((payload, start, start + 1) for payload, start, _ in bags[0])

    return Drawn(streams[0].lasting(1).distinct(), meaning)


def _distinct_on_some(random: Random, streams: Sequence[Stream]) -> Drawn:
    columns = random.choice([["value"], ["n"], ["x"], ["value", "x"], ["x", "n"]])

    def meaning(bags: Sequence[Bag], frontiers: Sequence[int]) -> Bag:
        points = [(payload, start, start + 1) for payload, start, _ in bags[0]]
        return distinct(points, columns, lambda row: identity(row[0]))

    return Drawn(streams[0].lasting(1).distinct(*columns), meaning)


def _final(random: Random, streams: Sequence[Stream]) -> Drawn:
    ordered = random.random() < 0.5
    return Drawn(
        streams[0].final(ordered=ordered),
        lambda bags, frontiers: cleansed(bags[0], frontiers[0], ordered=ordered),
        lambda bags, frontiers: cleanse.frontier(bags[0], frontiers[0]),
    )


def _sort(random: Random, streams: Sequence[Stream]) -> Drawn:
    return Drawn(streams[0].sort(), lambda bags, frontiers: bags[0], agrees=_no_further)


def _merge(random: Random, streams: Sequence[Stream]) -> Drawn:
    """A stream and another plan that means the same, and is as far."""
    stream = streams[0]
    other = random.choice(
        [
            lambda: stream.rename({"n": "m"}).rename({"m": "n"}),
            lambda: ab.union(
                *(stream.filter(one) for one in (ab.col("n") > 1, ab.col("n") <= 1, ab.col("n").is_null()))
            ),
            lambda: stream.shift(2).shift(-2),
            stream.sort,
        ]
    )()
    policy = random.choice([ab.FirstThenFinal(), ab.EveryChange(), ab.HalfFrozen(), ab.FinalOnly()])
    merged = ab.merge({"one": stream, "other": other}, policy=policy)
    ends_may_change = not all(Fact.PERFECT in one.node.properties for one in (stream, other))
    if isinstance(policy, ab.FinalOnly) and ends_may_change:
        return Drawn(
            merged,
            lambda bags, frontiers: bags[0],
            lambda bags, frontiers: cleanse.frontier(bags[0], frontiers[0]),
            _until_the_frontier,
        )
    return Drawn(merged, lambda bags, frontiers: bags[0], agrees=_until_the_frontier)


def own_sum(name: str) -> ab.Aggregate:
    """Twice the sum of a column, by functions."""
    return ab.aggregate(
        lift=lambda rows: pc.fill_null(rows.column(name), 0),
        combine=pc.add,
        finish=lambda sums: pc.multiply(sums, 2),
        remove=pc.subtract,
    )


def _values(pairs: Sequence[tuple[int, Any]]) -> list[Any]:
    return [value for _, value in pairs if value is not None]


def _there(pairs: Sequence[tuple[int, Any]]) -> list[tuple[int, Any]]:
    return [(start, value) for start, value in pairs if value is not None]


AGGREGATES: dict[str, tuple[Callable[[str], ab.Aggregate], Callable[[Any], Any]]] = {
    "rows": (lambda name: ab.count(), len),
    "count": (lambda name: ab.col(name).count(), lambda pairs: len(_values(pairs))),
    "sum": (lambda name: ab.col(name).sum(), lambda pairs: total(_values(pairs))),
    "min": (lambda name: ab.col(name).min(), lambda pairs: least(_values(pairs))),
    "max": (lambda name: ab.col(name).max(), lambda pairs: greatest(_values(pairs))),
    "first": (lambda name: ab.col(name).first(), lambda pairs: first(_there(pairs))),
    "last": (lambda name: ab.col(name).last(), lambda pairs: last(_there(pairs))),
    "n_unique": (lambda name: ab.col(name).n_unique(), lambda pairs: n_unique(_values(pairs))),
    "own": (own_sum, lambda pairs: 2 * (total(_values(pairs)) or 0)),
}
"""Aggregates of a column, and what each is of pairs of start and value."""
_COLUMNS = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in SCHEMA.items()])


@cache
def identity(payload: tuple[tuple[str, Any], ...]) -> tuple[int, int]:
    """The words by which rows of one start are in order."""
    low, high = identities(pa.RecordBatch.from_pylist([dict(payload)], schema=_COLUMNS))[0].tolist()
    return low, high


@dataclass(frozen=True)
class Made:
    """Aggregates of groups: how a plan says them, and what a window is said to be."""

    by: tuple[str, ...]
    aggregates: dict[str, tuple[str, str]]
    """By the column that they become, their name and the column that they are of."""

    @classmethod
    def drawn(cls, random: Random, by: Sequence[tuple[str, ...]]) -> "Made":
        """Aggregates for all columns that are not of the group; texts have fewer of them."""
        chosen = random.choice(by)
        found = {
            name: (random.choice(list(AGGREGATES)), random.choice(["n", "x"]))
            for name in ("n", "x")
            if name not in chosen
        }
        if "value" not in chosen:
            found["value"] = random.choice(["min", "max", "first", "last"]), "value"
        return cls(chosen, found)

    def of(self, windows: Any, **options: Any) -> Stream:
        """The aggregates of windows of a stream."""
        made = {f"of_{name}": AGGREGATES[one][0](of) for name, (one, of) in self.aggregates.items()}
        grouped = windows.group_by(*self.by) if self.by else windows
        return grouped.agg(**made, **options).select(
            **{name: ab.col(f"of_{name}" if name in self.aggregates else name) for name in SCHEMA}
        )

    def group(self, payload: Any) -> tuple[Any, ...]:
        """The group of a payload."""
        return tuple(dict(payload).get(name) for name in self.by)

    def payload(self, group: Any, inside: Any, start: int, end: int) -> Any:
        """What is said of a window."""
        found = dict(zip(self.by, group, strict=True))
        for name, (one, of) in self.aggregates.items():
            found[name] = AGGREGATES[one][1]([(begin, dict(p).get(of)) for p, begin, _ in inside])
        return _key(found)


GROUPS = ((), ("value",), ("value",), ("x",), ("value", "x"), ("n", "value"))
"""Columns that windows are grouped by; none: all rows are one group."""


def _session(random: Random, streams: Sequence[Stream]) -> Drawn:
    gap, made = random.randint(1, 6), Made.drawn(random, GROUPS)
    return Drawn(
        made.of(streams[0].session(gap)),
        lambda bags, frontiers: session(bags[0], made.group, made.payload, gap=gap, until=frontiers[0]),
        lambda bags, frontiers: sessions.frontier(bags[0], made.group, gap, frontiers[0]),
    )


def _row_windows(random: Random, streams: Sequence[Stream]) -> Drawn:
    size, every = random.randint(1, 5), random.randint(1, 5)
    made = Made.drawn(random, GROUPS)

    def order(row: Any) -> Any:
        return identity(row[0])

    def meaning(bags: Sequence[Bag], frontiers: Sequence[int]) -> Bag:
        numbers = {"size": size, "every": every, "until": frontiers[0]}
        return rows(bags[0], made.group, made.payload, order=order, **numbers)

    def promise(bags: Sequence[Bag], frontiers: Sequence[int]) -> int:
        return row_windows.frontier(bags[0], made.group, frontiers[0], size=size, every=every, order=order)

    return Drawn(made.of(streams[0].rows(size, every)), meaning, promise)


@cache
def carried_order(payload: tuple[tuple[str, Any], ...]) -> tuple[int, int]:
    """The words by which rows that carry this are in order."""
    columns = pa.schema([field for field in _COLUMNS if field.name != "n"])
    low, high = identities(pa.RecordBatch.from_pylist([dict(payload)], schema=columns))[0].tolist()
    return low, high


def _ranked(*, early: bool) -> Callable[[Random, Sequence[Stream]], Drawn]:
    """The greatest ``n`` of each window, with the other columns of its row."""

    def draw(random: Random, streams: Sequence[Stream]) -> Drawn:
        k, size = random.randint(1, 3), random.randint(1, 8)
        best = ab.col("n").top_k(k, carry=["value", "x"])
        windowed, session_too = streams[0].window(size), not early and random.random() < 0.4
        if session_too:
            windowed = streams[0].session(size)
        stream = windowed.agg(best, early=True) if early else windowed.agg(best)

        def rank(nth: int) -> Callable[[Any, Any, int, int], Any]:
            def payload(group: Any, inside: Any, start: int, end: int) -> Any:
                rows = [(dict(p).get("n"), _key({**dict(p), "n": None})) for p, _, _ in inside]
                found = top_k([(n, (carried_order(others), others)) for n, others in rows], k)
                return None if nth >= len(found) else _key({**dict(found[nth][1][1]), "n": found[nth][0]})

            return payload

        def meaning(bags: Sequence[Bag], frontiers: Sequence[int]) -> Bag:
            found: Bag = []
            until = FOREVER if early else frontiers[0]
            for nth in range(k):
                if session_too:
                    found += session(bags[0], _all, rank(nth), gap=size, until=until)
                else:
                    found += window(bags[0], _all, rank(nth), size=size, every=size, until=until)
            return found

        def promise(bags: Sequence[Bag], frontiers: Sequence[int]) -> int:
            if session_too:
                return sessions.frontier(bags[0], _all, size, frontiers[0])
            return windows.frontier(frontiers[0], size, size)

        return Drawn(stream.select("value", "n", "x"), meaning, promise)

    return draw


def _all(payload: Any) -> int:
    return 0


def _windowed(*, early: bool) -> Callable[[Random, Sequence[Stream]], Drawn]:
    def draw(random: Random, streams: Sequence[Stream]) -> Drawn:
        every = random.randint(1, 6)
        size = random.choice([every, every, 2 * every, every + 1, random.randint(1, 12)])
        made = Made.drawn(random, GROUPS)
        slide = random.random() < 0.5
        over = streams[0].window(size, every, lifetime="slide" if slide else "window")

        def meaning(bags: Sequence[Bag], frontiers: Sequence[int]) -> Bag:
            numbers = {"size": size, "every": every, "slide": slide}
            return window(
                bags[0], made.group, made.payload, until=FOREVER if early else frontiers[0], **numbers
            )

        def promise(bags: Sequence[Bag], frontiers: Sequence[int]) -> int:
            return windows.frontier(frontiers[0], size, every, slide=slide)

        return Drawn(made.of(over, early=early), meaning, promise)

    return draw


OPERATORS = (
    Operator("filter", _filter),
    Operator("with_columns", _select),
    Operator("select", _collapse),
    Operator("rename", _rename),
    Operator("apply", _apply),
    Operator("alter_lifetime", _alter),
    Operator("union", _union, inputs=2),
    Operator("join", _join(["inner", "semi"]), inputs=2),
    Operator("left join", _join(["left", "anti"]), inputs=2, waits=True),
    Operator("distinct", _distinct),
    Operator("distinct on some columns", _distinct_on_some),
    Operator("final", _final, waits=True),
    Operator("sort", _sort, waits=True),
    Operator("merge", _merge, waits=True),
    Operator("window", _windowed(early=False), waits=True),
    Operator("window, early", _windowed(early=True)),
    Operator("top_k", _ranked(early=False), waits=True),
    Operator("top_k, early", _ranked(early=True)),
    Operator("session", _session, waits=True),
    Operator("rows", _row_windows, waits=True),
)
