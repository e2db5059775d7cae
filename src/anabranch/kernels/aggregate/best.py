"""The k greatest values of a slot, each with what it carries, where nothing is ever taken away.

The values of a slot are a heap, the worst of them first: of equal values that with the greatest identity of
what it carries. A row whose value is below the worst of k is passed over after one look; what it carries is
read of no others than those that might stay.

Memory: of each value that is kept, at most k for each slot, 12 bytes, and where it carries something 20 more
and what it carries; a slot has room for four values, then eight and so on, and 20 bytes of its own. Cost:
constant for a row that is passed over, log k for one that stays.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.kernels.aggregate.codes import Codes
from anabranch.kernels.aggregate.column import Slots, Values, read_only
from anabranch.kernels.store.blocks import Blocks, give_block, order_of, take_block
from anabranch.kernels.store.slot_columns import SlotColumns
from anabranch.model.compiled import compiled, inlined, inner
from anabranch.model.identity import identities
from anabranch.model.pool import Pool, give_place, grown, take_place
from anabranch.model.rows import take_rows
from anabranch.model.slots import NONE

_LEAST = 4
_LOWEST = np.int64(-(2**63))
_AT_ONCE = 1 << 14
"""Of how many rows those that might stay are found at once."""


class Heaps(NamedTuple):
    """State: the heap of each slot, and the identity of what each value carries."""

    bar: NDArray[np.int64]
    """Of each slot the worst of k values: what is below it does not stay."""
    used: NDArray[np.int32]
    base: NDArray[np.int64]
    """Where the heap of each slot begins."""
    code: NDArray[np.int64]
    node: NDArray[np.int32]
    """The place of what each value carries."""
    blocks: Blocks
    ties: NDArray[np.uint64]
    """The identity of what is carried, by its place."""
    pool: Pool
    """The places that are free."""


class Best:
    """The k greatest codes of each slot, and what they carry."""

    invertible: ClassVar[bool] = False

    def __init__(self, k: int, codes: Codes, carried: pa.Schema) -> None:
        assert not codes.numbered, "the order of numbered values is not that of their codes"
        self.k, self.codes, self.carried, self.carry = k, codes, carried, bool(len(carried))
        self.columns = SlotColumns(carried)
        self.heaps = Heaps(
            np.zeros(0, np.int64),
            np.zeros(0, np.int32),
            np.zeros(0, np.int64),
            np.zeros(_LEAST, np.int64),
            np.zeros(_LEAST, np.int32),
            Blocks.none(),
            np.zeros((0, 2), np.uint64),
            Pool.of_capacity(0),
        )

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        heaps = self.heaps
        arrays = (heaps.bar, heaps.used, heaps.base, heaps.code, heaps.node, heaps.ties)
        return sum(one.nbytes for one in arrays) + heaps.pool.nbytes + self.columns.nbytes

    def with_room(self, capacity: int) -> None:
        """Have this many slots."""
        heaps = self.heaps
        self.heaps = heaps._replace(
            bar=grown(heaps.bar, capacity, _LOWEST),
            used=grown(heaps.used, capacity),
            base=grown(heaps.base, capacity),
        )

    def add(self, values: Values, sign: int) -> None:
        """Look at values with what they carry."""
        assert sign > 0, "nothing is taken from the best"
        columns = values.array.flatten()
        self._look(values.slots, read_only(self.codes.of(columns[0])), columns[1:])

    def _look(self, slots: Slots, code: NDArray[np.int64], carried: list[pa.Array]) -> None:
        if not self.carry:
            self._keep(slots, code, _NO_TIES)
            return
        carried = [column.cast(one.type) for column, one in zip(carried, self.carried, strict=True)]
        rows = pa.RecordBatch.from_arrays(carried, schema=self.carried)
        for begin in range(0, len(slots), _AT_ONCE):
            some, values = slots[begin : begin + _AT_ONCE], code[begin : begin + _AT_ONCE]
            likely = np.flatnonzero(values >= self.heaps.bar[some])
            part = take_rows(rows, begin + likely)
            self._put(some[likely], read_only(values[likely]), part, identities(part))

    def merge(self, into: Slots, other: Slots, sign: int = 1) -> None:
        """Look at what other slots have."""
        assert sign > 0, "nothing is taken from the best"
        counts = self.lengths(other)
        code, node = self._listed(other, counts, in_order=False)
        into = np.repeat(into, counts)
        if not self.carry:
            self._keep(into, read_only(code), _NO_TIES)
            return
        likely = np.flatnonzero(code >= self.heaps.bar[into])
        node = node[likely]
        self._put(into[likely], read_only(code[likely]), self.columns.at(node), self.heaps.ties[node])

    def clear(self, slots: Slots) -> None:
        """Nothing was looked at."""
        clear_heaps(self.heaps, np.int64(self.k), self.carry, slots)
        if self.carry:
            self.columns.forget_unused(self.heaps.pool.free)

    def lengths(self, slots: Slots) -> NDArray[np.int64]:
        """How many values each slot has."""
        return self.heaps.used[slots].astype(np.int64)

    def ordered(self, slots: Slots) -> tuple[NDArray[np.int64], NDArray[np.int64], list[pa.Array]]:
        """How many values each slot has, and all of them with what they carry, best first."""
        counts = self.lengths(slots)
        code, node = self._listed(slots, counts, in_order=True)
        return counts, code, self.columns.at(node).columns if self.carry else []

    def saved(self, slots: Slots) -> pa.RecordBatch:
        """The values of some slots, and what they carry."""
        counts, code, carried = self.ordered(slots)
        columns = [pa.array(np.repeat(np.arange(len(slots)), counts)), pa.array(code), *carried]
        names = ["slot", "code", *(f"carried {name}" for name in self.carried.names)]
        return pa.RecordBatch.from_arrays(columns, names=names)

    def load(self, slots: Slots, rows: pa.RecordBatch) -> None:
        """What slots had when it was saved."""
        place, code, *carried = rows.columns
        self._look(slots[place.to_numpy()], read_only(code.to_numpy()), carried)

    def _put(
        self, slots: Slots, code: NDArray[np.int64], rows: pa.RecordBatch, ties: NDArray[np.uint64]
    ) -> None:
        node = self._keep(slots, code, ties)
        stay = np.flatnonzero(node >= 0)
        if len(stay):
            self.columns.put(node[stay].astype(np.int64), take_rows(rows, stay))

    def _keep(self, slots: Slots, code: NDArray[np.int64], ties: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Keep the best; the place of what each row carries, NONE where it does not stay."""
        node = np.full(len(slots) if self.carry else 0, NONE, np.int32)
        row = 0
        while True:
            row = keep_best(self.heaps, np.int64(self.k), self.carry, slots, code, ties, row, node)
            if row == len(slots):
                return node
            self._grow()

    def _grow(self) -> None:
        """Room for more values, where there is none for a heap or what a value carries."""
        heaps = self.heaps
        if self.carry and not len(heaps.pool.free):
            places = max(2 * heaps.pool.capacity, _LEAST)
            self.heaps = heaps._replace(ties=grown(heaps.ties, places), pool=heaps.pool.of_size(places))
            self.columns.grow(places)
            return
        cells = 2 * len(heaps.code)
        node = grown(heaps.node, cells) if self.carry else heaps.node
        self.heaps = heaps._replace(code=grown(heaps.code, cells), node=node)

    def _listed(
        self, slots: Slots, counts: NDArray[np.int64], *, in_order: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        total = int(counts.sum())
        code, node = (np.empty(count, np.int64) for count in (total, total if self.carry else 0))
        list_best(self.heaps, self.carry, in_order, slots, code, node)
        return code, node


_NO_TIES = np.zeros((0, 2), np.uint64)


@inlined
def _room(order: Any, k: Any) -> Any:
    """The size of a heap's block."""
    return min(np.int64(_LEAST) << order, k)


@inlined
def _is_before(ties: Any, row: Any, others: Any, node: Any) -> Any:
    """What is carried comes before something else that is."""
    low, other = ties[row, 0], others[node, 0]
    return low < other or (low == other and ties[row, 1] < others[node, 1])


@inlined
def _is_worse(ties: Any, carry: Any, code: Any, node: Any, other_code: Any, other_node: Any) -> Any:
    """A value is less than another, or equal to it and carries what comes later."""
    return code < other_code or (carry and code == other_code and _is_before(ties, other_node, ties, node))


@inner
def _sift_up(
    codes: Any, nodes: Any, ties: Any, carry: bool, base: Any, used: Any, code: Any, node: Any
) -> None:
    """Put a value at the end of a heap, and up from there."""
    at = used
    while at > 0:
        above = base + (at - 1) // 2
        above_node = np.int64(nodes[above]) if carry else np.int64(0)
        if not _is_worse(ties, carry, code, node, codes[above], above_node):
            break
        codes[base + at] = codes[above]
        if carry:
            nodes[base + at] = above_node
        at = (at - 1) // 2
    codes[base + at] = code
    if carry:
        nodes[base + at] = node


@inner
def _sift_down(
    codes: Any, nodes: Any, ties: Any, carry: bool, base: Any, used: Any, code: Any, node: Any
) -> None:
    """Put a value in the place of the first of a heap, and down from there."""
    at = np.int64(0)
    while 2 * at + 1 < used:
        below = base + 2 * at + 1
        below_node = np.int64(nodes[below]) if carry else np.int64(0)
        if 2 * at + 2 < used:
            right_node = np.int64(nodes[below + 1]) if carry else np.int64(0)
            if _is_worse(ties, carry, codes[below + 1], right_node, codes[below], below_node):
                below, below_node = below + 1, right_node
        if not _is_worse(ties, carry, codes[below], below_node, code, node):
            break
        codes[base + at] = codes[below]
        if carry:
            nodes[base + at] = below_node
        at = below - base
    codes[base + at] = code
    if carry:
        nodes[base + at] = node


@inner
def _more_room(heaps: Heaps, k: Any, carry: bool, slot: Any, used: Any) -> bool:
    """Move a heap that is full to a larger block; whether there is one."""
    old = order_of(used, np.int64(_LEAST))
    order = old + 1 if used > 0 else old
    base = take_block(heaps.blocks, heaps.code, order, _room(order, k))
    if base < 0:
        return False
    if used > 0:
        before = heaps.base[slot]
        for n in range(used):
            heaps.code[base + n] = heaps.code[before + n]
            if carry:
                heaps.node[base + n] = heaps.node[before + n]
        give_block(heaps.blocks, heaps.code, old, before)
    heaps.base[slot] = base
    return True


@compiled
def keep_best(
    heaps: Heaps, k: Any, carry: bool, slots: Any, code: Any, ties: Any, row: int, found: Any
) -> int:
    """Keep the best values from a row on; the first row for which there is no room."""
    for i in range(row, len(slots)):
        slot, value = slots[i], code[i]
        if value < heaps.bar[slot]:
            continue
        used = np.int64(heaps.used[slot])
        if used < k:
            if carry and heaps.pool.height[0] == 0:
                return i
            full = used == 0 or used == _room(order_of(used, np.int64(_LEAST)), k)
            if full and not _more_room(heaps, k, carry, slot, used):
                return i
            node = take_place(heaps.pool) if carry else np.int64(0)
        else:
            root = heaps.base[slot]
            node = np.int64(heaps.node[root]) if carry else np.int64(0)
            if value == heaps.code[root] and not (carry and _is_before(ties, i, heaps.ties, node)):
                continue
        if carry:
            heaps.ties[node, 0], heaps.ties[node, 1] = ties[i, 0], ties[i, 1]
            found[i] = node
        base = heaps.base[slot]
        if used < k:
            _sift_up(heaps.code, heaps.node, heaps.ties, carry, base, used, value, node)
            heaps.used[slot] = used + 1
        else:
            _sift_down(heaps.code, heaps.node, heaps.ties, carry, base, used, value, node)
        if used + 1 >= k:
            heaps.bar[slot] = heaps.code[base]
    return len(slots)


@compiled
def clear_heaps(heaps: Heaps, k: Any, carry: bool, slots: Any) -> None:
    """Free the heaps of slots."""
    for slot in slots:
        used = np.int64(heaps.used[slot])
        heaps.bar[slot], heaps.used[slot] = _LOWEST, 0
        if used == 0:
            continue
        base = heaps.base[slot]
        if carry:
            for n in range(used):
                give_place(heaps.pool, heaps.node[base + n])
        give_block(heaps.blocks, heaps.code, order_of(used, np.int64(_LEAST)), base)


@compiled
def list_best(heaps: Heaps, carry: bool, in_order: bool, slots: Any, code: Any, node: Any) -> None:
    """Write down the values of slots, those of each best first where that is wanted."""
    begin = np.int64(0)
    for slot in slots:
        used, base = np.int64(heaps.used[slot]), heaps.base[slot]
        for n in range(used):
            code[begin + n] = heaps.code[base + n]
            if carry:
                node[begin + n] = heaps.node[base + n]
        if in_order:
            for last in range(used - 1, 0, -1):
                value, place = code[begin + last], np.int64(node[begin + last]) if carry else np.int64(0)
                code[begin + last] = code[begin]
                if carry:
                    node[begin + last] = node[begin]
                _sift_down(code, node, heaps.ties, carry, begin, np.int64(last), value, place)
        begin += used
