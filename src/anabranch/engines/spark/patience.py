"""Where the order of a micro-batch is not known, an adjust waits for the end that it corrects.

What a replica says of one event, between two of its attaches and detaches, is heard in an order in which
every adjust finds its old end: shown by the replica before the micro-batch, or said by an insert or adjust
that was heard before. An order in which the event is there once at most comes before all others. Where the
rows were read in such an order they stay in it. Where they were not, those from the first that is out of
order on are set aside and heard after the others; an adjust that finds no end comes last.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anabranch.engines.spark.order import ParcelRows, Turn
from anabranch.model.batch import Kind
from anabranch.model.identity import Words
from anabranch.model.slots import NONE
from anabranch.model.time import BEGINNING

Channels: TypeAlias = dict[tuple[str, str], list[Turn]]
Shows: TypeAlias = Callable[[str, Words, NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]
"""How often a replica shows each of some events: identities, starts and ends."""

_GONE = BEGINNING


def set_aside(channels: Channels, shows: Shows) -> tuple[Channels, dict[str, list[list[ParcelRows]]]]:
    """What is heard as it was read, and of each replica what is heard after it.

    The latter is a list for each of the times between attaches and detaches of a replica.
    """
    if not any(_adjusts(turn) for turns in channels.values() for turn in turns):
        return channels, {}
    aside: dict[str, list[list[ParcelRows]]] = {}
    for replica, instants in _instants(channels).items():
        first, *others = [_Instant.of(parts) for parts in instants]
        aside[replica] = [first.out_of_order(lambda *events, who=replica: shows(who, *events))]
        aside[replica] += [instant.out_of_order(_shows_nothing) for instant in others]
    gone: dict[int, list[NDArray[np.int64]]] = {}
    for part in (part for instants in aside.values() for parts in instants for part in parts):
        gone.setdefault(id(part.parcel), []).append(part.rows)
    if not gone:
        return channels, {}
    return {name: [_without(turn, gone) for turn in turns] for name, turns in channels.items()}, aside


def _adjusts(turn: Turn) -> bool:
    return not turn.stretch.ordered and any(
        (part.parcel.kind[part.rows] == Kind.ADJUST).any() for part in turn.parts
    )


def _shows_nothing(words: Words, start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.zeros(len(start), np.int64)


def _instants(channels: Channels) -> dict[str, list[list[ParcelRows]]]:
    """The events of each replica, in the order in which rounds come to them, cut where it comes or goes."""
    found: dict[str, list[list[ParcelRows]]] = {}
    for turns in zip_longest(*channels.values()):
        for part in (part for turn in turns if turn is not None for part in turn.parts):
            instants = found.setdefault(part.stretch.replica, [[]])
            kind = part.parcel.kind[part.rows]
            bounds = [0, *(np.flatnonzero(kind >= Kind.ATTACH) + 1).tolist(), len(kind)]
            for n, (begin, end) in enumerate(pairwise(bounds)):
                if n:
                    instants.append([])
                events = kind[begin:end] <= Kind.ADJUST
                instants[-1].append(replace(part, rows=part.rows[begin:end][events]))
    return found


def _without(turn: Turn, gone: Mapping[int, list[NDArray[np.int64]]]) -> Turn:
    """A turn without the rows of parcels that are gone."""
    parts = []
    for part in turn.parts:
        rows = np.concatenate([np.empty(0, np.int64), *gone.get(id(part.parcel), [])])
        parts.append(replace(part, rows=part.rows[~np.isin(part.rows, rows)]) if len(rows) else part)
    return replace(turn, parts=parts)


@dataclass(frozen=True, slots=True)
class _Instant:
    """Events of one replica as they were read, in columns."""

    parts: list[ParcelRows]
    part: NDArray[np.int64]
    row: NDArray[np.int64]
    words: Words
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    old_end: NDArray[np.int64]
    adjusts: NDArray[np.bool_]

    @classmethod
    def of(cls, parts: list[ParcelRows]) -> "_Instant":
        row = np.concatenate([np.empty(0, np.int64), *(part.rows for part in parts)])
        nothing = np.empty((0, 2), np.uint64)

        def column(name: str) -> NDArray[np.int64]:
            empty = np.empty(0, np.int64)
            return np.concatenate([empty, *(getattr(part.parcel, name)[part.rows] for part in parts)])

        return cls(
            parts,
            np.repeat(np.arange(len(parts)), [len(part.rows) for part in parts]),
            row,
            np.concatenate([nothing, *(_identities(part) for part in parts if len(part.rows))]),
            column("start"),
            column("end"),
            column("old_end"),
            column("kind") == Kind.ADJUST,
        )

    def out_of_order(
        self, shows: Callable[[Words, NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]
    ) -> list[ParcelRows]:
        """The rows that cannot be heard where they were read, in an order in which they can."""
        groups = list(self._doubtful())
        if not groups:
            return []
        asked = np.concatenate([group[self.adjusts[group]] for group in groups])
        counts = shows(self.words[asked], self.start[asked], self.old_end[asked])
        known = dict(zip(asked.tolist(), counts.tolist(), strict=True))
        late: list[tuple[int, int, int]] = []
        for group in groups:
            rows = group.tolist()
            held = Counter({int(self.old_end[row]): known[row] for row in rows if row in known})
            order = self._as_one(rows, held) or self._in_turn(rows, held)
            same = next(
                (n for n, pair in enumerate(zip(rows, order, strict=True)) if pair[0] != pair[1]), None
            )
            if same is not None:
                late += [(n, int(self.part[row]), row) for n, row in enumerate(order[same:])]
        late.sort()
        return [self._part(run) for run in _runs(late)]

    def _part(self, run: list[tuple[int, int, int]]) -> ParcelRows:
        return replace(self.parts[run[0][1]], rows=self.row[[row for _, _, row in run]])

    def _doubtful(self) -> Iterator[NDArray[np.int64]]:
        """Of each event about which an adjust may have been read too early, the rows."""
        order = np.lexsort((self.start, self.words[:, 1], self.words[:, 0]))
        words, start, end = self.words[order], self.start[order], self.end[order]
        adjusts, old_end = self.adjusts[order], self.old_end[order]
        new = np.ones(len(order), np.bool_)
        new[1:] = (words[1:] != words[:-1]).any(axis=1) | (start[1:] != start[:-1])
        first = np.flatnonzero(new)[np.cumsum(new) - 1]
        says = end > start
        follows = new.copy()
        follows[1:] |= np.where(adjusts[1:], says[:-1] & (end[:-1] == old_end[1:]), ~says[:-1])
        comes_later = ~new & adjusts[first] & says & (end == old_end[first])
        corrected = np.maximum.reduceat(adjusts, np.flatnonzero(new))[np.cumsum(new) - 1]
        doubtful = corrected & (~follows | comes_later)
        bounds = np.append(np.flatnonzero(new), len(order))
        for begin in np.unique(first[doubtful]).tolist():
            yield order[begin : bounds[np.searchsorted(bounds, begin, "right")]]

    def _as_one(self, rows: list[int], held: Counter[int]) -> list[int] | None:
        """Rows of one event in an order in which it is there once at most, if there is one.

        Ends are nodes of a graph and so is being gone, rows are edges: it is a trail along all of them.
        """
        ends = [end for end, count in held.items() if count]
        if len(ends) > 1:
            return None
        begin = ends[0] if ends else _GONE
        leaving: dict[int, list[int]] = {}
        for row in reversed(rows):
            leaving.setdefault(self._leaves(row), []).append(row)
        path, trail = [(begin, NONE)], []
        while path:
            if leaving.get(path[-1][0]):
                row = leaving[path[-1][0]].pop()
                path.append((self._reaches(row), row))
            else:
                trail.append(path.pop()[1])
        trail = trail[-2::-1]
        for wanted in (rows, trail):
            nodes = [begin, *(self._reaches(row) for row in wanted)]
            if len(wanted) == len(rows) and nodes[:-1] == [self._leaves(row) for row in wanted]:
                return wanted
        return None

    def _leaves(self, row: int) -> int:
        return int(self.old_end[row]) if self.adjusts[row] else _GONE

    def _reaches(self, row: int) -> int:
        return int(self.end[row]) if self.end[row] > self.start[row] else _GONE

    def _in_turn(self, rows: list[int], held: Counter[int]) -> list[int]:
        """Rows of one event in an order in which adjusts find their old ends, as far as there is one."""
        waiting, heard = list(rows), []
        while (row := self._next(waiting, held)) is not None:
            waiting.remove(row)
            heard.append(row)
            if self.adjusts[row]:
                held[int(self.old_end[row])] -= 1
            if self.end[row] > self.start[row]:
                held[int(self.end[row])] += 1
        return heard + waiting

    def _next(self, waiting: list[int], held: Counter[int]) -> int | None:
        for row in waiting:
            if not self.adjusts[row] or held[int(self.old_end[row])] > 0:
                return row
        return None


def _identities(part: ParcelRows) -> Words:
    parcel = part.parcel
    assert parcel.identities is not None, "what is packed has identities"
    return parcel.identities[parcel.place[part.rows]]


def _runs(late: list[tuple[int, int, int]]) -> Iterator[list[tuple[int, int, int]]]:
    """Rows with one turn and part together."""
    run: list[tuple[int, int, int]] = []
    for one in late:
        if run and run[0][:2] != one[:2]:
            yield run
            run = []
        run.append(one)
    if run:
        yield run
