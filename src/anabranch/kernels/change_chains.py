"""The changes of each key as a chain in the order of time, and what a change in its midst alters, compiled.

A change fits what the ones before it leave: an insert where no row is there, an update or a delete where one
is, an upsert and a row of a snapshot always. One that does not fit brings and ends nothing, and may fit
later: then it is *in doubt*. A new change alters at most the fits and ends of what follows, up to the first
change that fits before and after; so that much of the chain is walked, and no more.

Where changes count as they come, a chain is the row that is there, and nothing is in doubt.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.model.application import ADJUST, INSERT
from anabranch.model.compiled import compiled, inlined
from anabranch.model.op import Op
from anabranch.model.pool import Pool, give_place, take_place
from anabranch.model.slots import NONE, TAG_MASK, link_all, node_in, slot_of, tag_in, vacate_slot
from anabranch.model.time import BEGINNING, FOREVER

OP_INSERT, OP_UPDATE, OP_DELETE, OP_UPSERT, OP_SNAPSHOT, OP_INCREMENTAL = map(int, Op)

BEHIND, AT_THE_END, NOT_THERE, THERE, NOT_YET = range(5)
"""Why a change is refused."""
_FITS = -1

_COLUMNS = (
    "low",
    "high",
    "time",
    "rank",
    "place",
    "op",
    "fits",
    "now",
    "before",
    "after",
    "number",
    "channel",
)


class Chains(NamedTuple):
    """State: a node for each change, and an open-addressing table from keys to the last node of each."""

    slots: NDArray[np.int64]
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    time: NDArray[np.int64]
    rank: NDArray[np.int64]
    """The order of changes of one key at one time."""
    place: NDArray[np.int64]
    """Where the payload stands; NONE for a node that is free."""
    op: NDArray[np.int8]
    fits: NDArray[np.int8]
    now: NDArray[np.int8]
    """Whether it fits with the change that is being put in; of use only meanwhile."""
    before: NDArray[np.int32]
    after: NDArray[np.int32]
    number: NDArray[np.int64]
    """Which row of its channel it was."""
    channel: NDArray[np.int32]
    pool: Pool
    doubts: NDArray[np.int32]
    """The nodes that did not fit when last looked at, once each."""
    doubted: NDArray[np.int8]
    """Whether a node is among them."""
    doubts_count: NDArray[np.int64]
    """How many doubts there are, as an array of one."""

    @classmethod
    def of_capacity(cls, capacity: int) -> "Chains":
        """No changes, with room for this many (a power of two)."""
        return cls(
            slots=np.full(2 * capacity, NONE, np.int64),
            low=np.zeros(capacity, np.uint64),
            high=np.zeros(capacity, np.uint64),
            time=np.zeros(capacity, np.int64),
            rank=np.zeros(capacity, np.int64),
            place=np.full(capacity, NONE, np.int64),
            op=np.zeros(capacity, np.int8),
            fits=np.zeros(capacity, np.int8),
            now=np.zeros(capacity, np.int8),
            before=np.full(capacity, NONE, np.int32),
            after=np.full(capacity, NONE, np.int32),
            number=np.zeros(capacity, np.int64),
            channel=np.zeros(capacity, np.int32),
            pool=Pool.of_capacity(capacity),
            doubts=np.zeros(capacity, np.int32),
            doubted=np.zeros(capacity, np.int8),
            doubts_count=np.zeros(1, np.int64),
        )

    @property
    def capacity(self) -> int:
        """How many changes fit."""
        return self.pool.capacity

    @property
    def used(self) -> int:
        """How many changes there are."""
        return self.pool.used

    @property
    def waiting(self) -> int:
        """How many changes are in doubt, or were when last looked at."""
        return int(self.doubts_count[0])

    def live(self) -> NDArray[np.int64]:
        """The nodes that hold a change."""
        return np.flatnonzero(self.place != NONE)

    def with_room(self, more: int, frontier: int) -> "Chains":
        """The same changes, each at the same node, with room for more; what can count no longer is gone."""
        if self.pool.with_room(more) is self.pool:
            return self
        forget(self, frontier)
        if 4 * (self.used + more) <= 3 * self.capacity:
            return self
        larger = Chains.of_capacity(1 << (4 * (self.used + more) // 3).bit_length())
        for column in (*_COLUMNS, "doubts", "doubted"):
            getattr(larger, column)[: self.capacity] = getattr(self, column)
        larger.doubts_count[:] = self.doubts_count
        link_all(self.slots, larger.slots)
        return larger._replace(pool=self.pool.of_size(larger.capacity))


@inlined
def _tag_of(low: Any) -> Any:
    """31 bits of a key; an identity is a hash, so its lowest bits are a home among the slots."""
    return np.int64(low & TAG_MASK)


@compiled
def _find(chains: Chains, low: Any, high: Any) -> Any:
    """The slot of this key, or the empty slot where it would go."""
    mask, tag = len(chains.slots) - 1, _tag_of(low)
    slot = tag & mask
    while chains.slots[slot] >= 0:
        if tag_in(chains.slots[slot]) == tag:
            node = node_in(chains.slots[slot])
            if chains.low[node] == low and chains.high[node] == high:
                break
        slot = (slot + 1) & mask
    return slot


@compiled
def _link(chains: Chains, slot: int, before: Any, after: Any, low: Any, high: Any) -> Any:
    """A node from the stack between two of its chain; what it holds is up to the caller."""
    node = take_place(chains.pool)
    chains.low[node], chains.high[node] = low, high
    chains.before[node], chains.after[node] = before, after
    if before != NONE:
        chains.after[before] = node
    if after != NONE:
        chains.before[after] = node
    else:
        chains.slots[slot] = slot_of(_tag_of(low), node)
    return node


@compiled
def _unlink(chains: Chains, node: Any) -> None:
    """Take a node out of its chain, and the key out of the table if it was the only one."""
    before, after = np.int64(chains.before[node]), np.int64(chains.after[node])
    if before != NONE:
        chains.after[before] = after
    if after != NONE:
        chains.before[after] = before
    else:
        slot = _find(chains, chains.low[node], chains.high[node])
        if before == NONE:
            vacate_slot(chains.slots, slot)
        else:
            chains.slots[slot] = slot_of(_tag_of(chains.low[node]), before)
    chains.place[node] = NONE
    give_place(chains.pool, node)


@compiled
def _there(chains: Chains, node: Any) -> Any:
    """The change that brought the row which is there after a node, or NONE."""
    while node != NONE and not chains.fits[node]:
        node = np.int64(chains.before[node])
    if node == NONE or chains.op[node] == OP_DELETE:
        return np.int64(NONE)
    return np.int64(node)


@inlined
def _fits(op: int, is_there: bool) -> Any:
    return op >= OP_UPSERT or is_there == (op != OP_INSERT)


@inlined
def _misfit(op: int, is_there: bool, at: int, since: int) -> Any:
    """Why a change does not fit the row that is there, where changes count as they come, or that it does."""
    if not _fits(op, is_there):
        return THERE if is_there else NOT_THERE
    return NOT_YET if is_there and at < since else _FITS


@compiled
def _altered(chains: Chains, node: Any) -> tuple[Any, Any]:
    """Which changes fit from a new node on, as ``now``: the first that fits as before, how many until it."""
    is_there = _there(chains, np.int64(chains.before[node])) != NONE
    count = 0
    while node != NONE:
        chains.now[node] = _fits(chains.op[node], is_there)
        if chains.now[node]:
            if chains.fits[node]:
                break
            is_there = chains.op[node] != OP_DELETE
        count += 1
        node = np.int64(chains.after[node])
    return np.int64(node), count


@compiled
def _next_fitting(chains: Chains, fits: Any, node: Any) -> Any:
    """When the first change from a node on that fits commits."""
    while node != NONE and not fits[node]:
        node = np.int64(chains.after[node])
    return chains.time[node] if node != NONE else np.int64(FOREVER)


@compiled
def _say(chains: Chains, new: Any, until: Any, row: int, out: Any, said: int) -> Any:
    """Say what a new node alters: first what ends otherwise, then what begins. How many elements are out.

    Each node says one element at most, in one of the two turns: those until ``until``, and the one before.
    """
    first = _there(chains, np.int64(chains.before[new]))
    for beginning in range(2):
        node = first if first != NONE else new
        while node != until:
            start, follows = chains.time[node], np.int64(chains.after[node])
            was = ends = start
            if chains.op[node] != OP_DELETE:
                if chains.fits[node]:
                    was = _next_fitting(chains, chains.fits, follows)
                if node == first:
                    ends = _next_fitting(chains, chains.now, new)
                elif chains.now[node]:
                    ends = _next_fitting(chains, chains.now, follows)
            if was != ends and beginning == (was == start):
                kind = INSERT if beginning else ADJUST
                out[said] = kind, chains.place[node], start, ends, 0 if beginning else was, row
                said += 1
            node = new if node == first else follows
    return said


@compiled
def _settle(chains: Chains, new: Any, until: Any) -> None:
    """Take over what fits now, from a new node on."""
    node = new
    while node != until:
        chains.fits[node] = chains.now[node]
        if not chains.fits[node] and not chains.doubted[node]:
            _doubt(chains, node)
        node = np.int64(chains.after[node])


@compiled
def _doubt(chains: Chains, node: Any) -> None:
    """A node is in doubt once, and is there until it is given up: all doubts fit where all nodes do."""
    chains.doubted[node] = 1
    chains.doubts[chains.doubts_count[0]] = node
    chains.doubts_count[0] += 1


@compiled
def give_up(chains: Chains, frontier: int, given_up: Any) -> Any:
    """Take out what is in doubt and can fit no more; how many there are, for which there is room.

    A row of it is (op, time, place, number, channel, reason, what it does not fit with).
    """
    kept = count = 0
    for n in range(chains.doubts_count[0]):
        node = np.int64(chains.doubts[n])
        if not chains.fits[node] and chains.time[node] >= frontier:
            chains.doubts[kept] = node
            kept += 1
            continue
        chains.doubted[node] = 0
        if chains.fits[node]:
            continue
        there = _there(chains, np.int64(chains.before[node]))
        reason = NOT_THERE if there == NONE else THERE
        known = frontier if there == NONE else chains.time[there]
        given_up[count] = (
            np.int64(chains.op[node]),
            chains.time[node],
            chains.place[node],
            chains.number[node],
            np.int64(chains.channel[node]),
            reason,
            known,
        )
        count += 1
        _unlink(chains, node)
    chains.doubts_count[0] = kept
    return count


@compiled
def apply_changes(
    chains: Chains,
    batch: tuple[Any, Any, Any, Any],
    source: tuple[Any, Any, Any, bool],
    begin: int,
    place: int,
    frontier: int,
    out: Any,
    refused: Any,
    brought: Any,
) -> tuple[int, int, int, int, int]:
    """Apply changes from a row on, as long as there is room for what comes of them.

    ``batch`` are the columns kind, time, op and key. ``source`` is which row of which channel each is, their
    ranks among those of one time, and if they count as they come. The payload of row r stands at
    ``place + r``. A row of the output is (kind, place of the payload, start, end, old end, row of
    the batch), for those refused see `give_up`. Returns the row where it stopped, how many rows are out and
    refused, how many nodes ``brought`` names (those of changes that came, of which some have left again), and
    how many changes met another of their key and time with another rank.
    """
    kind, time, op, key = batch
    number, channel, rank, as_they_come = source
    said = unfit = births = ties = 0
    for row in range(begin, len(kind)):
        at = time[row]
        if kind[row] > ADJUST:
            continue
        is_first = op[row] == OP_SNAPSHOT
        if (at < frontier and not is_first) or at == FOREVER:
            reason = AT_THE_END if at == FOREVER else BEHIND
            refused[unfit] = op[row], at, place + row, number[row], np.int64(channel[row]), reason, frontier
            unfit += 1
            continue
        if is_first:
            at = np.int64(BEGINNING)
        low, high = key[row, 0], key[row, 1]
        slot = _find(chains, low, high)
        before, after = node_in(chains.slots[slot]), np.int64(NONE)
        if as_they_come:
            reason = _misfit(op[row], before != NONE, at, chains.time[before])
            if reason != _FITS:
                reason = THERE if is_first else reason
                known = frontier if before == NONE else chains.time[before]
                refused[unfit] = (
                    op[row],
                    time[row],
                    place + row,
                    number[row],
                    np.int64(channel[row]),
                    reason,
                    known,
                )
                unfit += 1
                continue
        while before != NONE and (
            chains.time[before] > at
            or (not as_they_come and chains.time[before] == at and chains.rank[before] > rank[row])
        ):
            before, after = np.int64(chains.before[before]), before
        tied = before != NONE and chains.time[before] == at and chains.rank[before] != rank[row]
        tied = tied or (after != NONE and chains.time[after] == at)
        node = _link(chains, slot, before, after, low, high)
        chains.time[node], chains.rank[node], chains.place[node] = at, rank[row], place + row
        chains.op[node], chains.fits[node] = op[row], 0
        chains.number[node], chains.channel[node] = number[row], channel[row]
        until, count = _altered(chains, node)
        if said + count + 1 > len(out):
            _unlink(chains, node)
            return row, said, unfit, births, ties
        brought[births] = node
        births += 1
        ties += tied
        if chains.now[node]:
            said = _say(chains, node, until, row, out, said)
        _settle(chains, node, until if chains.now[node] else np.int64(chains.after[node]))
        if as_they_come:
            if before != NONE:
                _unlink(chains, before)
            if op[row] == OP_DELETE:
                _unlink(chains, node)
    return len(kind), said, unfit, births, ties


@compiled
def forget(chains: Chains, frontier: int) -> None:
    """Take out what can count no longer: of each key what is older than its row at the frontier.

    What was in doubt behind the frontier has been given up before.
    """
    for last in range(len(chains.pool.stack)):
        if chains.place[last] == NONE or chains.after[last] != NONE:
            continue
        node = np.int64(last)
        while node != NONE and not (chains.fits[node] and chains.time[node] < frontier):
            node = np.int64(chains.before[node])
        if node != NONE and chains.op[node] != OP_DELETE:
            node = np.int64(chains.before[node])
        while node != NONE:
            before = np.int64(chains.before[node])
            _unlink(chains, node)
            node = before


@compiled
def in_chains(chains: Chains, nodes: Any) -> None:
    """All nodes, each chain from its first to its last."""
    end = len(nodes)
    for last in range(len(chains.pool.stack)):
        if chains.place[last] == NONE or chains.after[last] != NONE:
            continue
        node = np.int64(last)
        while node != NONE:
            end -= 1
            nodes[end] = node
            node = np.int64(chains.before[node])


@compiled
def restore(chains: Chains, keys: tuple[Any, Any], columns: tuple[Any, Any, Any, Any, Any, Any]) -> None:
    """Put changes into empty chains, each behind those of its key before it, the payload of row r at r."""
    low, high = keys
    time, op, fits, number, channel, rank = columns
    for row in range(len(low)):
        slot = _find(chains, low[row], high[row])
        last = node_in(chains.slots[slot])
        node = _link(chains, slot, last, np.int64(NONE), low[row], high[row])
        chains.time[node], chains.rank[node], chains.place[node] = time[row], rank[row], row
        chains.op[node], chains.fits[node] = op[row], fits[row]
        chains.number[node], chains.channel[node] = number[row], channel[row]
        chains.doubted[node] = 0
        if not fits[row]:
            _doubt(chains, node)


@compiled
def rows_there(chains: Chains) -> Any:
    """How many keys have a row after all their changes."""
    count = 0
    for last in range(len(chains.pool.stack)):
        if chains.place[last] != NONE and chains.after[last] == NONE:
            count += _there(chains, np.int64(last)) != NONE
    return count


@compiled
def begin_at(chains: Chains, keys: Any, time: Any) -> None:
    """Let the row of each key that has been there since the beginning of time be there since another time."""
    for row in range(len(keys)):
        slot = _find(chains, keys[row, 0], keys[row, 1])
        node = node_in(chains.slots[slot])
        while node != NONE:
            if chains.time[node] == BEGINNING:
                chains.time[node] = time[row]
            node = np.int64(chains.before[node])


@compiled
def places_at(chains: Chains, keys: Any, time: Any, places: Any) -> None:
    """Where the payload of the row stands that each key has at a time, or NONE."""
    for row in range(len(keys)):
        slot = _find(chains, keys[row, 0], keys[row, 1])
        node = node_in(chains.slots[slot])
        while node != NONE and chains.time[node] > time[row]:
            node = np.int64(chains.before[node])
        there = _there(chains, node)
        places[row] = NONE if there == NONE else chains.place[there]
