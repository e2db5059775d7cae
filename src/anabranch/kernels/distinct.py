"""Of point events that are equal on some columns and start together one: that of the least identity.

So the order of arrival is not seen in what is left. Where the columns are not all, a row of a lesser identity
takes the place of the one that was said, and where that is removed, the next greater one does. The promise
is that of the input: whatever is said has the start of a row that came, and so it is no earlier.

Memory: where nothing is removed, an entry per group that starts at the stable or later; else one per distinct
payload of the group with how often it is there. Where payloads are more than the columns that are told apart,
the payload of each entry. What the stable has passed goes with a sweep, when as many rows have come as there
are entries. Cost: a look-up per row; of a group whose payloads differ, a look at those of lesser identities.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from anabranch.kernels.kernel import Report, Result, State
from anabranch.kernels.store.chains import NEXT, START, Keys, Nodes, chained, sweep
from anabranch.kernels.store.saved import version_of
from anabranch.kernels.store.slot_columns import SlotColumns
from anabranch.model.batch import Batch, Kind, concat
from anabranch.model.compiled import compiled, inlined
from anabranch.model.identity import Words, identities
from anabranch.model.murmur import mix
from anabranch.model.pool import take_place
from anabranch.model.slots import NONE
from anabranch.model.time import BEGINNING, FOREVER

VERSION = 2
_LEAST = 1024
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_NO_WORDS = np.empty((0, 2), np.uint64)
ROW, TAKES, LEAVES = range(3)
"""What is said: a row as it came, a node's event that takes a place, one that leaves its place."""


class Distinct:
    """State: of each group and start the payloads that are there, in the order of their identities.

    >>> from anabranch.model.elements import Adjust, Insert
    >>> kernel = Distinct(["room"], pa.schema({"room": pa.string(), "by": pa.string()}))
    >>> rows = [
    ...     Insert({"room": "A", "by": "x"}, 3, 4),
    ...     Insert({"room": "A", "by": "y"}, 3, 4),
    ...     Adjust({"room": "A", "by": "x"}, 3, 4, 3),
    ... ]
    >>> for element in kernel.push("", Batch.of(rows)).events:
    ...     print(element)
    Insert(payload={'room': 'A', 'by': 'x'}, start=3, end=4)
    Adjust(payload={'room': 'A', 'by': 'x'}, start=3, old_end=4, end=3)
    Insert(payload={'room': 'A', 'by': 'y'}, start=3, end=4)
    """

    held: ClassVar[bool] = False

    def __init__(self, columns: Sequence[str], schema: pa.Schema, *, removable: bool = True) -> None:
        self.columns, self.schema, self.removable = tuple(columns), schema, removable
        several = {*columns} != {*schema.names}
        self.compared = removable or several
        """Payloads of a group are told apart by their identities."""
        self.frontier = BEGINNING
        self.keys = Keys.of_capacity(_LEAST)
        self.nodes = Nodes.of_capacity(_LEAST, removable=self.compared)
        self.nobody = Nodes.of_capacity(1, removable=False)
        """Chains are of two sides, and there is one here."""
        self.payloads = SlotColumns(schema if several else pa.schema([]))
        self.payloads.grow(_LEAST)
        self._since, self._due = 0, _LEAST

    def push(self, name: str, batch: Batch) -> Result:
        """The rows that are the least of their group, and what they or removals put in another's place."""
        if batch.kind.any():
            counts = (batch.kind == Kind.INSERT) | ((batch.kind == Kind.ADJUST) & (batch.end == batch.start))
            batch = batch if counts.all() else batch.take(counts)
        if not len(batch):
            return Result(batch)
        assert self.removable or not batch.kind.any(), "a stream of which nothing is removed has no removals"
        self._since += len(batch)
        if (nodes := self.nodes.with_room(len(batch))) is not self.nodes:
            self.nodes = nodes
            self.payloads.grow(nodes.capacity)
        self.keys, number = self.keys.number(self._groups(batch))
        words = self._words(batch) if self.compared else _NO_WORDS
        into, gone = np.empty(len(batch), np.int64), np.empty(len(batch), np.int64)
        said, how = np.empty(2 * len(batch), np.int64), np.empty(2 * len(batch), np.int8)
        rows = number, batch.start, batch.kind.astype(np.bool_), words
        keeps = self.removable
        count, freed = _tell_apart(self.keys, self.nodes, *rows, keeps, said, how, into, gone)
        stored = into >= 0
        if self.payloads.schema.names and stored.any():
            self.payloads.put(into[stored], batch.take(stored).payload)
        events = self._events(batch, said[:count], how[:count])
        self.nodes.pool.give_back(gone[:freed])
        return Result(events)

    def advance(self, name: str, time: int) -> Result:
        """No events; groups that start before the stable are forgotten."""
        self.frontier = max(self.frontier, time)
        if self._since > self._due or time == FOREVER:
            sweep(self.keys, self.nodes, self.nobody, self.frontier, FOREVER)
            self.payloads.forget_unused(self.nodes.pool.free)
            self._since, self._due = 0, max(_LEAST, self.nodes.used, self.keys.numbers.used)
        return Result(Batch.of([]))

    def report(self) -> Report:
        """Entries, those that the stable has passed and no sweep has met among them."""
        nbytes = self.keys.nbytes + self.nodes.nbytes + self.payloads.nbytes
        return Report(self.nodes.used, nbytes, {"touched": int(self.nodes.touched[0])})

    def saved(self) -> State:
        """The entries, those of a group in their order, and their payloads."""
        found, number = np.empty(self.nodes.used, np.int64), np.empty(self.nodes.used, np.int64)
        count = chained(self.keys, 0, self.nodes, self.frontier, found, number)
        found, number = found[:count], number[:count]
        words = self.nodes.words[found] if self.compared else np.zeros((count, 2), np.uint64)
        group = self.keys.numbers.words[number]
        columns = {
            "group_low": group[:, 0],
            "group_high": group[:, 1],
            "low": words[:, 0],
            "high": words[:, 1],
            "start": self.nodes.node[found, START],
            "count": self.nodes.matches[found],
        }
        values = {"frontier": self.frontier, "touched": int(self.nodes.touched[0])}
        return State(VERSION, values, [pa.RecordBatch.from_pydict(columns), self.payloads.at(found)])

    @classmethod
    def load(cls, state: State, columns: Sequence[str], schema: pa.Schema, *, removable: bool) -> "Distinct":
        """The kernel that was saved."""
        version_of(state, VERSION, "distinct")
        kernel = cls(columns, schema, removable=removable)
        kernel.frontier = state.values["frontier"]
        entries, payload = state.batches
        column = {name: entries.column(name).to_numpy() for name in entries.schema.names}
        group = np.stack([column["group_low"], column["group_high"]], axis=1)
        words = np.stack([column["low"], column["high"]], axis=1) if kernel.compared else _NO_WORDS
        kernel.nodes = kernel.nodes.with_room(len(group))
        kernel.payloads.grow(kernel.nodes.capacity)
        kernel.keys, number = kernel.keys.number(group)
        into, nothing = np.empty(len(group), np.int64), np.empty(len(group), np.int64)
        rows = number, column["start"], np.zeros(len(group), np.bool_), words
        said, how = np.empty(2 * len(group), np.int64), np.empty(2 * len(group), np.int8)
        _tell_apart(kernel.keys, kernel.nodes, *rows, removable, said, how, into, nothing)
        kernel.nodes.matches[into] = column["count"]
        kernel.nodes.touched[0] = state.values["touched"]
        if kernel.payloads.schema.names:
            kernel.payloads.put(into, payload)
        return kernel

    def _groups(self, batch: Batch) -> Words:
        """Of each row an identity of its columns and its start."""
        payload = batch.payload
        alike = len(self.columns) == len(self.schema)
        words = self._words(batch) if alike else identities(payload.select(list(self.columns)))
        found = np.empty_like(words)
        _with_start(words, batch.start, found)
        return found

    def _words(self, batch: Batch) -> Words:
        return identities(batch.payload) if batch.__dict__.get("by") is not None else batch.identities

    def _events(self, batch: Batch, said: Any, how: Any) -> Batch:
        """Rows as they came, and payloads that take the place of another or leave theirs."""
        others = how != ROW
        if not others.any():
            return batch.take(said)
        nodes, leaves = said[others], how[others] == LEAVES
        start = self.nodes.node[nodes, START]
        end = np.where(leaves, start, start + 1)
        kinds = np.where(leaves, np.int8(Kind.ADJUST), np.int8(Kind.INSERT))
        changed = Batch(kinds, start, end, np.where(leaves, start + 1, 0), self.payloads.at(nodes))
        order = np.where(others, len(batch) + np.cumsum(others) - 1, said)
        return concat([batch.plain(), changed]).take(order)


@compiled
def _with_start(words: Any, start: Any, found: Any) -> None:
    for i in range(len(start)):
        found[i, 0] = mix(words[i, 0] + np.uint64(start[i]) * _SPREAD)
        found[i, 1] = words[i, 1]


@inlined
def _less(words: Any, one: Any, others: Any, other: Any) -> Any:
    """One identity is before another."""
    low, high = words[one, 0], others[other, 0]
    return low < high or (low == high and words[one, 1] < others[other, 1])


@compiled
def _tell_apart(
    keys: Keys,
    nodes: Nodes,
    number: Any,
    start: Any,
    removal: Any,
    words: Any,
    keeps: bool,
    said: Any,
    how: Any,
    into: Any,
    gone: Any,
) -> tuple[int, int]:
    """Count rows in; how many things are said, and how many nodes are no longer needed.

    ``keeps``: those that are not the least of their group are kept, for it may be removed. Writes to ``said``
    a row or a node and ``how`` it is said, at most two for each row; to ``into`` the node that each row made,
    and to ``gone`` those that are no longer in a chain, at most one for each row.
    """
    count = freed = 0
    for i in range(len(number)):
        into[i] = NONE
        previous, node = np.int64(NONE), np.int64(keys.cells[number[i], 0])
        first = node
        if len(words):
            while node >= 0 and _less(nodes.words, node, words, i):
                nodes.touched[0] += 1
                previous, node = node, nodes.node[node, NEXT]
        nodes.touched[0] += 1
        known = node >= 0 and (len(words) == 0 or not _less(words, i, nodes.words, node))
        if removal[i]:
            if not known:
                continue
            nodes.matches[node] -= 1
            if nodes.matches[node] > 0:
                continue
            following = nodes.node[node, NEXT]
            gone[freed] = node
            freed += 1
            if previous >= 0:
                nodes.node[previous, NEXT] = following
                continue
            keys.cells[number[i], 0] = following
            said[count], how[count] = i, ROW
            count += 1
            if following >= 0:
                said[count], how[count] = following, TAKES
                count += 1
        elif known:
            nodes.matches[node] += 1
        elif keeps or previous < 0:
            new = take_place(nodes.pool)
            nodes.node[new, START], nodes.node[new, NEXT] = start[i], node
            nodes.matches[new] = 1
            if len(words):
                nodes.words[new, 0], nodes.words[new, 1] = words[i, 0], words[i, 1]
            into[i] = new
            if previous >= 0:
                nodes.node[previous, NEXT] = new
                continue
            keys.cells[number[i], 0] = new
            if first >= 0:
                said[count], how[count] = first, LEAVES
                count += 1
                if not keeps:
                    nodes.node[new, NEXT] = NONE
                    gone[freed] = first
                    freed += 1
            said[count], how[count] = i, ROW
            count += 1
    return count, freed
