"""Events of one or two sides by key: a chain of nodes for each side and key, compiled.

A key has a number (`Numbers`), and by it the first node of its chain on each side. A node is a start and the
node after it, 16 bytes together; what else is known of an event is in columns by node. New nodes come first.
Nodes whose start is before a limit are over: whoever walks a chain unlinks them, and a sweep does so where
nobody walks.

**Keys with many nodes** are kept by stretches of time: when a chain has more than `MANY` nodes, each of them
goes to the chain of its key and stretch, which is a key with a number of its own, made of both. A walk
between two times then looks at the stretches between them, at most a stretch too much at either end.

Memory: 16 bytes per node, 24 and what `Numbers` takes per key.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.store.ahead import ahead
from anabranch.kernels.store.numbers import (
    Numbers,
    give_back,
    number_for,
    number_of,
    slot_ahead,
)
from anabranch.model.compiled import compiled, inlined, inner
from anabranch.model.identity import Words
from anabranch.model.murmur import mix
from anabranch.model.pool import Pool, give_place, grown, take_place
from anabranch.model.slots import NONE
from anabranch.model.time import BEGINNING, FOREVER

MANY = 48
"""Nodes of a chain beyond which its key is kept by stretches."""
_APART = -1
"""The length of a chain whose nodes are in chains of their stretches."""
_UNUSED, _WHOLE = -2, -1
START, NEXT = 0, 1
"""The columns of nodes."""
_LENGTH = 2
_NO_NODES = NONE, NONE, 0, 0
"""The cells of a key that has none."""
_AHEAD = 8
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class Keys(NamedTuple):
    """State: of each number the first nodes and the lengths of both sides, and how it came to be."""

    numbers: Numbers
    cells: NDArray[np.int32]
    """By number: the first node of either side, and how many there are."""
    whole: NDArray[np.int32]
    """Of a key that is a stretch of another the number of that; of others _WHOLE, or _UNUSED."""
    stretches: NDArray[np.int32]
    """How many stretches a key has."""

    @classmethod
    def of_capacity(cls, capacity: int) -> "Keys":
        """None, with room for this many (a power of two)."""
        numbers = Numbers.of_capacity(capacity)
        cells = np.tile(np.array(_NO_NODES, np.int32), (capacity, 1))
        return cls(numbers, cells, np.full(capacity, _UNUSED, np.int32), np.zeros(capacity, np.int32))

    def grown(self, numbers: Numbers) -> "Keys":
        """The same keys, with room for as many numbers as there are now."""
        if numbers.capacity == len(self.cells):
            return self._replace(numbers=numbers)
        capacity = numbers.capacity
        cells = np.empty((capacity, len(_NO_NODES)), np.int32)
        cells[: len(self.cells)], cells[len(self.cells) :] = self.cells, _NO_NODES
        return Keys(numbers, cells, grown(self.whole, capacity, _UNUSED), grown(self.stretches, capacity))

    def number(self, words: Words) -> tuple["Keys", NDArray[np.int32]]:
        """The number of each key, whose identity is given."""
        numbers, found, new = self.numbers.number(words)
        keys = self.grown(numbers)
        keys.whole[found[new]] = _WHOLE
        return keys, found

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.numbers.nbytes + sum(column.nbytes for column in self[1:])


class Nodes(NamedTuple):
    """State: the nodes of one side, and those that are free."""

    node: NDArray[np.int64]
    """By node: its start, and the node after it."""
    words: Words
    """The identities of payloads, where events may be removed; else nothing."""
    matches: NDArray[np.int32]
    """How many events of the other side match, where somebody counts; GONE: it was removed."""
    pool: Pool
    touched: NDArray[np.int64]
    """How many nodes walks have looked at, as an array of one."""

    @classmethod
    def of_capacity(cls, capacity: int, *, removable: bool) -> "Nodes":
        """None, with room for this many."""
        return cls(
            np.zeros((capacity, 2), np.int64),
            np.zeros((capacity if removable else 0, 2), np.uint64),
            np.zeros(capacity, np.int32),
            Pool.of_capacity(capacity),
            np.zeros(1, np.int64),
        )

    @property
    def capacity(self) -> int:
        """How many fit."""
        return self.pool.capacity

    @property
    def used(self) -> int:
        """How many there are."""
        return self.pool.used

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(column.nbytes for column in (self.node, self.words, self.matches, self.pool))

    def with_room(self, more: int) -> "Nodes":
        """The same nodes, with room for so many more."""
        pool = self.pool.with_room(more)
        if pool is self.pool:
            return self
        words = grown(self.words, pool.capacity) if len(self.words) else self.words
        matches = grown(self.matches, pool.capacity)
        return Nodes(grown(self.node, pool.capacity), words, matches, pool, self.touched)


GONE = -1


class Rows(NamedTuple):
    """Rows of a batch, in columns: what is to be kept, and what is to be removed."""

    number: NDArray[np.int32]
    start: NDArray[np.int64]
    removal: NDArray[np.bool_]
    kept: NDArray[np.bool_]
    """An event that is kept; a removal that may have to be done."""
    words: Words
    counts: NDArray[np.int32]
    """How many events of the other side match each, where somebody counts; else nothing."""


@inlined
def _low_of(low: Any, stretch: int) -> Any:
    """The low word of the identity of a stretch of a key."""
    return mix(low ^ (np.uint64(stretch) * _SPREAD + np.uint64(1)))


@inlined
def _moved(time: int, ticks: int) -> Any:
    """A time that is moved; beyond an end of time it is at the end."""
    if ticks >= 0:
        return time + ticks if time <= FOREVER - ticks else np.int64(FOREVER)
    return time + ticks if time >= BEGINNING - ticks else np.int64(BEGINNING)


@inner
def _unlink(cells: Any, number: Any, side: Any, nodes: Nodes, previous: Any, node: Any) -> None:
    if previous == NONE:
        cells[number, side] = nodes.node[node, NEXT]
    else:
        nodes.node[previous, NEXT] = nodes.node[node, NEXT]
    cells[number, _LENGTH + side] -= 1


@inner
def _walk(
    keys: Keys,
    number: Any,
    side: Any,
    nodes: Nodes,
    first: Any,
    last: Any,
    limit: int,
    row: Any,
    rows: Any,
    found: Any,
    count: Any,
) -> Any:
    """Note the nodes of a chain that start within two times; how many pairs there are, NONE: no room."""
    previous, node = np.int64(NONE), np.int64(keys.cells[number, side])
    while node >= 0:
        nodes.touched[0] += 1
        start, following = nodes.node[node, START], nodes.node[node, NEXT]
        if start < limit:
            _unlink(keys.cells, number, side, nodes, previous, node)
            give_place(nodes.pool, node)
        else:
            if first <= start <= last:
                if count == len(rows):
                    return np.int64(NONE)
                rows[count] = row
                found[count] = node
                count += 1
            previous = node
        node = following
    return count


@compiled
def probe(
    keys: Keys,
    side: Any,
    nodes: Nodes,
    number: Any,
    starts: Any,
    less: int,
    more: int,
    limit: int,
    stretch: int,
    begin: int,
    count: Any,
    rows: Any,
    found: Any,
) -> tuple[int, int]:
    """Pair rows, from one on, with the nodes of their keys that start so much less or more, both included.

    Writes which row and which node; how many rows are done when room runs out, and how many pairs there are.
    """
    for i in range(begin, len(number)):
        if i + 4 * _AHEAD < len(number):
            ahead(keys.cells, np.int64(number[i + 4 * _AHEAD]))
        if i + 2 * _AHEAD < len(number):
            ahead(keys.cells, np.int64(number[i + 2 * _AHEAD]))
        if i + _AHEAD < len(number):
            ahead(nodes.node, np.int64(max(keys.cells[number[i + _AHEAD], side], 0)))
        if more < 0 and starts[i] < BEGINNING - more:  # all that is near is before the beginning of time
            continue
        before, first, last = count, _moved(starts[i], -less), _moved(starts[i], more)
        if keys.cells[number[i], _LENGTH + side] != _APART:
            count = _walk(keys, number[i], side, nodes, first, last, limit, i, rows, found, np.int64(count))
        else:
            low, high = keys.numbers.words[number[i], 0], keys.numbers.words[number[i], 1]
            for one in range(max(first, limit) // stretch, last // stretch + 1):
                part = number_of(keys.numbers, _low_of(low, one), high)
                if part >= 0 and count >= 0:
                    count = _walk(
                        keys, part, side, nodes, first, last, limit, i, rows, found, np.int64(count)
                    )
        if count == NONE:
            return i, before
    return len(number), count


@inner
def _link(keys: Keys, number: Any, side: Any, nodes: Nodes, node: Any) -> None:
    nodes.node[node, NEXT] = keys.cells[number, side]
    keys.cells[number, side] = node
    keys.cells[number, _LENGTH + side] += 1


@inner
def _stretch_for(keys: Keys, number: Any, one: Any) -> Any:
    """The number of a stretch of a key; the caller has made room."""
    low, high = keys.numbers.words[number, 0], keys.numbers.words[number, 1]
    part = number_for(keys.numbers, _low_of(low, one), high)
    if keys.whole[part] == _UNUSED:
        keys.whole[part] = number
        keys.stretches[number] += 1
    return part


@inner
def _part(keys: Keys, number: Any, side: Any, nodes: Nodes, stretch: int) -> None:
    """Let the nodes of a chain go to the chains of their stretches, in their order."""
    node, turned = np.int64(keys.cells[number, side]), np.int64(NONE)
    while node >= 0:
        following = nodes.node[node, NEXT]
        nodes.node[node, NEXT] = turned
        node, turned = following, node
    keys.cells[number, side], keys.cells[number, _LENGTH + side] = NONE, _APART
    while turned >= 0:
        following = nodes.node[turned, NEXT]
        _link(keys, _stretch_for(keys, number, nodes.node[turned, START] // stretch), side, nodes, turned)
        turned = following


@inner
def _find(keys: Keys, number: Any, side: Any, nodes: Nodes, start: int, low: Any, high: Any) -> Any:
    """The node of an event in a chain, and the one before it."""
    previous, node = np.int64(NONE), np.int64(keys.cells[number, side])
    while node >= 0:
        nodes.touched[0] += 1
        if nodes.node[node, START] == start and nodes.words[node, 0] == low and nodes.words[node, 1] == high:
            return previous, node
        previous, node = node, nodes.node[node, NEXT]
    return previous, node


@compiled
def keep(
    keys: Keys, side: Any, nodes: Nodes, rows: Rows, stretch: int, lingers: bool, begin: int, into: Any
) -> int:
    """Keep the events of rows, and forget those that are removed, from one row on; how many are done.

    Writes the node of each event to ``into``, NONE: none. The node of one that is removed is free, unless
    it ``lingers``: then it is marked as gone. Room for nodes is there; where that for numbers runs out, it is
    for the caller to make some.
    """
    for i in range(begin, len(rows.number)):
        into[i] = NONE
        if not rows.kept[i]:
            continue
        if keys.numbers.pool.height[0] <= MANY + 1:
            return i
        number = np.int64(rows.number[i])
        if keys.cells[number, _LENGTH + side] == _APART:
            number = np.int64(_stretch_for(keys, number, rows.start[i] // stretch))
        if rows.removal[i]:
            low, high = rows.words[i, 0], rows.words[i, 1]
            previous, node = _find(keys, number, side, nodes, rows.start[i], low, high)
            if node >= 0:
                _unlink(keys.cells, number, side, nodes, previous, node)
                if lingers:
                    nodes.matches[node] = GONE
                else:
                    give_place(nodes.pool, node)
            continue
        node = take_place(nodes.pool)
        nodes.node[node, START] = rows.start[i]
        if len(rows.words):
            nodes.words[node, 0], nodes.words[node, 1] = rows.words[i, 0], rows.words[i, 1]
        if len(rows.counts):
            nodes.matches[node] = rows.counts[i]
        _link(keys, number, side, nodes, node)
        into[i] = node
        if keys.whole[number] == _WHOLE and keys.cells[number, _LENGTH + side] > MANY:
            _part(keys, number, side, nodes, stretch)
    return len(rows.number)


@inner
def _may_go(keys: Keys, number: Any, left: Nodes, right: Nodes, first_left: int, first_right: int) -> Any:
    """A number is in use, and the newest nodes of both its chains, if any, are before the limits."""
    if keys.whole[number] == _UNUSED:
        return False
    node, other = np.int64(keys.cells[number, 0]), np.int64(keys.cells[number, 1])
    if node >= 0 and left.node[node, START] >= first_left:
        return False
    return other < 0 or right.node[other, START] < first_right


@inner
def _over(keys: Keys, number: Any, side: Any, nodes: Nodes, limit: int) -> None:
    """Let go of the nodes of a chain that start before a limit."""
    previous, node = np.int64(NONE), np.int64(keys.cells[number, side])
    while node >= 0:
        following = nodes.node[node, NEXT]
        if nodes.node[node, START] < limit:
            _unlink(keys.cells, number, side, nodes, previous, node)
            give_place(nodes.pool, node)
        else:
            previous = node
        node = following


@inner
def _forget(keys: Keys, number: Any) -> Any:
    """Give a number back that has no nodes and no stretches; the key it is a stretch of, if it is one."""
    cells = keys.cells
    if cells[number, 0] >= 0 or cells[number, 1] >= 0 or keys.stretches[number] > 0:
        return np.int64(NONE)
    whole = np.int64(keys.whole[number])
    cells[number, _LENGTH], cells[number, _LENGTH + 1] = 0, 0
    keys.whole[number] = _UNUSED
    give_back(keys.numbers, number)
    if whole >= 0:
        keys.stretches[whole] -= 1
        return whole
    return np.int64(NONE)


@compiled
def sweep(keys: Keys, left: Nodes, right: Nodes, first_left: int, first_right: int) -> None:
    """Let go of all nodes before the limits of their sides, and of the keys that have none."""
    for number in range(len(keys.whole)):
        if number + 2 * _AHEAD < len(keys.whole):
            ahead(left.node, np.int64(max(keys.cells[number + 2 * _AHEAD, 0], 0)))
            ahead(right.node, np.int64(max(keys.cells[number + 2 * _AHEAD, 1], 0)))
        later = number + _AHEAD
        if later < len(keys.whole) and _may_go(keys, later, left, right, first_left, first_right):
            slot_ahead(keys.numbers, keys.numbers.words[later, 0], keys.numbers.words[later, 1])
        if keys.whole[number] == _UNUSED:
            continue
        _over(keys, number, 0, left, first_left)
        _over(keys, number, 1, right, first_right)
        whole = _forget(keys, number)
        if whole >= 0 and whole < number:
            _forget(keys, whole)


@compiled
def chained(keys: Keys, side: int, nodes: Nodes, limit: int, found: Any, number: Any) -> int:
    """Write all nodes that start at a limit or later, and their keys; how many there are."""
    count = 0
    for one in range(len(keys.whole)):
        if keys.whole[one] == _UNUSED:
            continue
        node = np.int64(keys.cells[one, side])
        while node >= 0:
            if nodes.node[node, START] >= limit:
                found[count] = node
                number[count] = one if keys.whole[one] == _WHOLE else keys.whole[one]
                count += 1
            node = nodes.node[node, NEXT]
    return count


@compiled
def count_matches(matches: Any, nodes: Any, step: Any, changed: Any) -> int:
    """Add to the matches of nodes; writes which steps made the first one, or took the last one away."""
    count = 0
    for i in range(len(nodes)):
        before = matches[nodes[i]]
        matches[nodes[i]] = before + step[i]
        if before == 0 or before + step[i] == 0:
            changed[count] = i
            count += 1
    return count
