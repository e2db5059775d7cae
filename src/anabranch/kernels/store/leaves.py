"""Points of a number in order: a tree of leaves for each number, compiled.

A point is a row of int64 cells: first its key, one cell or several that are compared one after the other,
then what the operator keeps with it. Keys of one number differ. The rows of a leaf are together and in order,
so a walk from a point reads memory from left to right; leaves of a number know their neighbours. A number
with one leaf has nothing else; one with more has a tree above them, whose rows are a key that is no greater
than those of a child and greater than those of the child before, and the child.

A **row** is a place among the cells. It stands for its point until the next insert or removal of its number.

**Measure.** One column may be a measure: then each node knows the greatest value of it below (``most``), and
a walk can leave out what is too small.

A leaf that becomes empty is given back, and one that becomes small is joined with a neighbour below the same
parent if both fit well into one. Leaves to which all is added at the end stay full.

Memory: a leaf has room for `BREADTH` points, and a number that has points has one leaf at least. Cost: an
insert, a removal and a search look at one node of each level, of which there are few; rows of a batch that
are sorted by number and key find their leaves in the cache.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.model.compiled import inlined, inner
from anabranch.model.pool import Pool, give_place, grown, take_place
from anabranch.model.slots import NONE
from anabranch.model.time import BEGINNING

BREADTH = 16
"""Rows of a node."""
_FEW, _JOINED = BREADTH // 4, 3 * BREADTH // 4
"""A leaf with so few rows is joined with a neighbour if they have no more than so many together."""
LEVELS = 22
"""No tree has more levels above its leaves: a leaf is split after at least 4 inserts, and a node above after
at least BREADTH / 2 of its children were, so this level would take more than 2**63 inserts."""
ROOM = LEVELS + 2
"""Nodes that one insert takes at most: a leaf, one of each level, and a root."""
TIME = 0
"""The key, where it is one cell."""


class Leaves(NamedTuple):
    """State: by number the root of its tree, and by node its rows."""

    root: NDArray[np.int32]
    """By number its root; NONE: it has no points."""
    levels: NDArray[np.int32]
    """By number how many levels are above the leaves."""
    cells: NDArray[np.int64]
    size: NDArray[np.int32]
    """By node how many of its rows are in use."""
    before: NDArray[np.int32]
    after: NDArray[np.int32]
    """By leaf its neighbours."""
    most: NDArray[np.int64]
    """By node the greatest measure below."""
    pool: Pool
    path: NDArray[np.int64]
    """Scratch: by level the node and the row of it by which a leaf was reached."""
    sought: NDArray[np.int64]
    """Scratch: the key that is looked for, and a key that goes up when a node is split."""
    measure: int
    """The column that is measured; NONE: none."""

    @classmethod
    def of_capacity(cls, capacity: int, *, keys: int, width: int, measure: int = NONE) -> "Leaves":
        """No points, with room for this many nodes: rows are of so many cells, the first of them the key."""
        assert 0 < keys < width, f"a row has its key and one cell more at least, this has {width} with {keys}"
        return cls(
            np.empty(0, np.int32),
            np.empty(0, np.int32),
            np.zeros((capacity * BREADTH, width), np.int64),
            np.zeros(capacity, np.int32),
            np.full(capacity, NONE, np.int32),
            np.full(capacity, NONE, np.int32),
            np.zeros(capacity, np.int64),
            Pool.of_capacity(capacity),
            np.zeros((LEVELS + 1, 2), np.int64),
            np.zeros((2, keys), np.int64),
            measure,
        )

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        columns = (self.root, self.levels, self.cells, self.size, self.before, self.after, self.most)
        return sum(column.nbytes for column in columns) + self.pool.nbytes

    def with_numbers(self, numbers: int) -> "Leaves":
        """The same points, with room for so many numbers."""
        if numbers <= len(self.root):
            return self
        return self._replace(root=grown(self.root, numbers, NONE), levels=grown(self.levels, numbers))

    def with_room(self, inserts: int = 1) -> "Leaves":
        """The same points, with room for the nodes that so many inserts may take."""
        pool = self.pool.with_room(ROOM + inserts)
        if pool is self.pool:
            return self
        capacity = pool.capacity
        return self._replace(
            cells=grown(self.cells, capacity * BREADTH),
            size=grown(self.size, capacity),
            before=grown(self.before, capacity, NONE),
            after=grown(self.after, capacity, NONE),
            most=grown(self.most, capacity),
            pool=pool,
        )


@inlined
def has_room(leaves: Leaves) -> Any:
    """One more insert finds the nodes that it may take."""
    return leaves.pool.height[0] >= ROOM


@inner
def seek(leaves: Leaves, number: int, key: int) -> Any:
    """The row of the first point at a key or after it, or NONE. Keys are one cell."""
    leaves.sought[0, TIME] = key
    return seek_key(leaves, number)


@inner
def seek_last(leaves: Leaves, number: int, key: int) -> Any:
    """The row of the last point at a key or before it, or NONE. Keys are one cell."""
    leaves.sought[0, TIME] = key
    if leaves.root[number] == NONE:
        return np.int64(NONE)
    leaf = descend(leaves, number)
    count = _count_before(leaves, leaf, True)
    return leaf * BREADTH + count - 1 if count else preceding(leaves, leaf * BREADTH)


@inner
def insert(leaves: Leaves, number: int, key: int) -> Any:
    """The row of a new point, whose other cells are 0; there is none at this key. Keys are one cell."""
    leaves.sought[0, TIME] = key
    return insert_key(leaves, number, np.int64(0))


@inner
def first(leaves: Leaves, number: int) -> Any:
    """The row of the first point of a number, or NONE."""
    if leaves.root[number] == NONE:
        return np.int64(NONE)
    return _leftmost(leaves, number) * BREADTH


@inlined
def following(leaves: Leaves, row: int) -> Any:
    """The row of the next point of the number, or NONE."""
    node = row // BREADTH
    if row + 1 < node * BREADTH + leaves.size[node]:
        return np.int64(row + 1)
    after = np.int64(leaves.after[node])
    return after * BREADTH if after >= 0 else np.int64(NONE)


@inlined
def preceding(leaves: Leaves, row: int) -> Any:
    """The row of the point before, or NONE."""
    node = row // BREADTH
    if row > node * BREADTH:
        return np.int64(row - 1)
    before = np.int64(leaves.before[node])
    return before * BREADTH + leaves.size[before] - 1 if before >= 0 else np.int64(NONE)


@inner
def remove(leaves: Leaves, number: int, row: int) -> None:
    """Forget the point of a row."""
    _seek_row(leaves, row)
    remove_at(leaves, number, descend(leaves, number), row, np.int64(row + 1))
    join_neighbours(leaves, number)


@inner
def drop_before(leaves: Leaves, number: int, key: int) -> None:
    """Forget the points of a number before a key. Keys are one cell."""
    leaves.sought[0, TIME] = key
    while leaves.root[number] != NONE:
        leaf = _leftmost(leaves, number)
        count = _count_before(leaves, leaf, False)
        whole = count == leaves.size[leaf]
        if count:
            remove_at(leaves, number, leaf, leaf * BREADTH, leaf * BREADTH + count)
        if not whole:
            return


@inner
def clear(leaves: Leaves, number: int) -> None:
    """Forget all points of a number."""
    while leaves.root[number] != NONE:
        leaf = _leftmost(leaves, number)
        remove_at(leaves, number, leaf, leaf * BREADTH, leaf * BREADTH + leaves.size[leaf])


@inlined
def _is_before(leaves: Leaves, row: int, equal: bool) -> Any:
    """The key of a row is before the key that is looked for, or equal to it where that counts."""
    for column in range(leaves.sought.shape[1]):
        if leaves.cells[row, column] != leaves.sought[0, column]:
            return leaves.cells[row, column] < leaves.sought[0, column]
    return equal


@inner
def _count_before(leaves: Leaves, node: Any, equal: bool) -> Any:
    """How many rows of a node are before the key that is looked for, or equal to it where that counts."""
    low, high = node * BREADTH, node * BREADTH + leaves.size[node]
    while low < high:
        middle = (low + high) >> 1
        if _is_before(leaves, middle, equal):
            low = middle + 1
        else:
            high = middle
    return np.int64(low - node * BREADTH)


@inner
def descend(leaves: Leaves, number: int) -> Any:
    """The leaf where the key that is looked for is or would be, and the path to it."""
    node = np.int64(leaves.root[number])
    for level in range(leaves.levels[number]):
        nth = max(_count_before(leaves, node, True) - 1, np.int64(0))
        leaves.path[level, 0], leaves.path[level, 1] = node, nth
        node = leaves.cells[node * BREADTH + nth, leaves.sought.shape[1]]
    return node


@inner
def _leftmost(leaves: Leaves, number: int) -> Any:
    """The first leaf, and the path to it."""
    node = np.int64(leaves.root[number])
    for level in range(leaves.levels[number]):
        leaves.path[level, 0], leaves.path[level, 1] = node, 0
        node = leaves.cells[node * BREADTH, leaves.sought.shape[1]]
    return node


@inlined
def _seek_row(leaves: Leaves, row: int) -> None:
    """Let the key of a row be looked for."""
    for column in range(leaves.sought.shape[1]):
        leaves.sought[0, column] = leaves.cells[row, column]


@inner
def seek_key(leaves: Leaves, number: int) -> Any:
    """The row of the first point at the key that is looked for or after it, or NONE."""
    if leaves.root[number] == NONE:
        return np.int64(NONE)
    leaf = descend(leaves, number)
    count = _count_before(leaves, leaf, False)
    if count < leaves.size[leaf]:
        return leaf * BREADTH + count
    return following(leaves, leaf * BREADTH + count - 1)


@inner
def has_key(leaves: Leaves, row: int) -> Any:
    """A row is there and has the key that is looked for."""
    if row < 0:
        return False
    for column in range(leaves.sought.shape[1]):
        if leaves.cells[row, column] != leaves.sought[0, column]:
            return False
    return True


@inner
def insert_key(leaves: Leaves, number: int, measured: Any) -> Any:
    """The row of a new point at the key that is looked for, with the measure that it will have.

    No point has this key, and there is room. Other cells than those of the key are 0.
    """
    if leaves.root[number] == NONE:
        leaves.root[number] = _new_node(leaves)
        leaves.levels[number] = 0
    leaf = descend(leaves, number)
    if leaves.size[leaf] == BREADTH:
        _split(leaves, number, leaf)
        leaf = descend(leaves, number)
    row = leaf * BREADTH + _count_before(leaves, leaf, False)
    _open_row(leaves, leaf, row)
    for column in range(leaves.sought.shape[1]):
        leaves.cells[row, column] = leaves.sought[0, column]
    for column in range(leaves.sought.shape[1], leaves.cells.shape[1]):
        leaves.cells[row, column] = 0
    if leaves.measure >= 0:
        leaves.most[leaf] = max(leaves.most[leaf], measured)
        for level in range(leaves.levels[number]):
            node = leaves.path[level, 0]
            leaves.most[node] = max(leaves.most[node], measured)
    return row


@inner
def _new_node(leaves: Leaves) -> Any:
    node = take_place(leaves.pool)
    leaves.size[node], leaves.before[node], leaves.after[node] = 0, NONE, NONE
    leaves.most[node] = BEGINNING
    return node


@inner
def _copy_row(leaves: Leaves, to: int, row: int) -> None:
    for column in range(leaves.cells.shape[1]):
        leaves.cells[to, column] = leaves.cells[row, column]


@inner
def _open_row(leaves: Leaves, node: Any, row: Any) -> None:
    """Move the rows of a node from one on by one; it is not full."""
    for other in range(node * BREADTH + leaves.size[node], row, -1):
        _copy_row(leaves, other, other - 1)
    leaves.size[node] += 1


@inner
def _close_rows(leaves: Leaves, node: Any, begin: Any, end: Any) -> None:
    """Take rows out of a node."""
    for other in range(end, node * BREADTH + leaves.size[node]):
        _copy_row(leaves, other - (end - begin), other)
    leaves.size[node] -= end - begin


@inner
def _part(leaves: Leaves, node: Any, kept: Any) -> Any:
    """A new node with the rows of a full one from the ``kept``-th on."""
    right = _new_node(leaves)
    for nth in range(kept, BREADTH):
        _copy_row(leaves, right * BREADTH + nth - kept, node * BREADTH + nth)
    leaves.size[node], leaves.size[right] = kept, BREADTH - kept
    return right


@inner
def _split(leaves: Leaves, number: int, leaf: Any) -> None:
    """Make two leaves of a full one; the key that is looked for is after all of its number, or anywhere."""
    keys = leaves.sought.shape[1]
    after = np.int64(leaves.after[leaf])
    at_end = after == NONE and _count_before(leaves, leaf, True) == BREADTH
    right = _part(leaves, leaf, np.int64(BREADTH if at_end else BREADTH // 2))
    for column in range(keys):
        leaves.sought[1, column] = (
            leaves.sought[0, column] if at_end else leaves.cells[right * BREADTH, column]
        )
    leaves.before[right], leaves.after[right], leaves.after[leaf] = leaf, after, right
    if after >= 0:
        leaves.before[after] = right
    _measure_leaf(leaves, leaf)
    _measure_leaf(leaves, right)
    left = leaf
    for level in range(leaves.levels[number] - 1, -1, -1):
        parent, row = leaves.path[level, 0], leaves.path[level, 0] * BREADTH + leaves.path[level, 1] + 1
        if leaves.size[parent] < BREADTH:
            _put_child(leaves, parent, row, right)
            return
        other = _part(leaves, parent, np.int64(BREADTH // 2))
        if row > parent * BREADTH + BREADTH // 2:
            row = other * BREADTH + row - parent * BREADTH - BREADTH // 2
            _put_child(leaves, other, row, right)
        else:
            _put_child(leaves, parent, row, right)
        for column in range(keys):
            leaves.sought[1, column] = leaves.cells[other * BREADTH, column]
        _measure_inner(leaves, parent)
        _measure_inner(leaves, other)
        left, right = parent, other
    root = _new_node(leaves)
    leaves.size[root] = 1
    for column in range(keys):
        leaves.cells[root * BREADTH, column] = leaves.cells[left * BREADTH, column]
    leaves.cells[root * BREADTH, keys] = left
    _put_child(leaves, root, root * BREADTH + 1, right)
    _measure_inner(leaves, root)
    leaves.root[number] = root
    leaves.levels[number] += 1


@inner
def _put_child(leaves: Leaves, parent: Any, row: Any, child: Any) -> None:
    """A child in a row of a parent that is not full, with the key that goes up."""
    _open_row(leaves, parent, row)
    for column in range(leaves.sought.shape[1]):
        leaves.cells[row, column] = leaves.sought[1, column]
    leaves.cells[row, leaves.sought.shape[1]] = child


@inner
def _measure_leaf(leaves: Leaves, leaf: Any) -> None:
    if leaves.measure < 0:
        return
    most = np.int64(BEGINNING)
    for row in range(leaf * BREADTH, leaf * BREADTH + leaves.size[leaf]):
        most = max(most, leaves.cells[row, leaves.measure])
    leaves.most[leaf] = most


@inner
def _measure_inner(leaves: Leaves, node: Any) -> None:
    if leaves.measure < 0:
        return
    keys = leaves.sought.shape[1]
    most = leaves.most[leaves.cells[node * BREADTH, keys]]
    for row in range(node * BREADTH + 1, node * BREADTH + leaves.size[node]):
        most = max(most, leaves.most[leaves.cells[row, keys]])
    leaves.most[node] = most


@inner
def remove_at(leaves: Leaves, number: int, leaf: Any, begin: Any, end: Any) -> None:
    """Forget the points of rows of the leaf to which the path leads; what becomes empty is given back."""
    _close_rows(leaves, leaf, begin, end)
    level = np.int64(leaves.levels[number] - 1)
    if leaves.size[leaf]:
        _measure_leaf(leaves, leaf)
    else:
        before, after = np.int64(leaves.before[leaf]), np.int64(leaves.after[leaf])
        if before >= 0:
            leaves.after[before] = after
        if after >= 0:
            leaves.before[after] = before
        give_place(leaves.pool, leaf)
        while level >= 0:
            node, row = leaves.path[level, 0], leaves.path[level, 0] * BREADTH + leaves.path[level, 1]
            _close_rows(leaves, node, row, row + 1)
            if leaves.size[node]:
                break
            give_place(leaves.pool, node)
            level -= 1
        if level < 0:
            leaves.root[number] = NONE
            leaves.levels[number] = 0
            return
    for above in range(level, -1, -1):
        _measure_inner(leaves, leaves.path[above, 0])
    _lower(leaves, number)


@inner
def _lower(leaves: Leaves, number: int) -> None:
    """A root with one child is not needed."""
    while leaves.levels[number] > 0 and leaves.size[leaves.root[number]] == 1:
        root = np.int64(leaves.root[number])
        leaves.root[number] = leaves.cells[root * BREADTH, leaves.sought.shape[1]]
        leaves.levels[number] -= 1
        give_place(leaves.pool, root)


@inner
def join_neighbours(leaves: Leaves, number: int) -> None:
    """Join the leaf of the key that is looked for with a neighbour below the same parent, if it is small."""
    if leaves.levels[number] == 0 or leaves.root[number] == NONE:
        return
    leaf = descend(leaves, number)
    if leaves.size[leaf] > _FEW:
        return
    level = leaves.levels[number] - 1
    parent, nth = leaves.path[level, 0], leaves.path[level, 1]
    if not _join(leaves, number, parent, nth - 1):
        _join(leaves, number, parent, nth)


@inner
def _join(leaves: Leaves, number: int, parent: Any, nth: Any) -> Any:
    """Let the nth leaf of a parent have the rows of the next, if there are such and they are few."""
    keys = leaves.sought.shape[1]
    if nth < 0 or nth + 1 >= leaves.size[parent]:
        return False
    row = parent * BREADTH + nth
    left, right = leaves.cells[row, keys], leaves.cells[row + 1, keys]
    if leaves.size[left] + leaves.size[right] > _JOINED:
        return False
    for other in range(leaves.size[right]):
        _copy_row(leaves, left * BREADTH + leaves.size[left] + other, right * BREADTH + other)
    leaves.size[left] += leaves.size[right]
    after = np.int64(leaves.after[right])
    leaves.after[left] = after
    if after >= 0:
        leaves.before[after] = left
    leaves.most[left] = max(leaves.most[left], leaves.most[right])
    give_place(leaves.pool, right)
    _close_rows(leaves, parent, row + 1, row + 2)
    _lower(leaves, number)
    return True
