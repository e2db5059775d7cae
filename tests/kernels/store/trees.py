"""What is true of the trees of leaves after every operation."""

from anabranch.kernels.store.leaves import BREADTH, Leaves
from anabranch.model.slots import NONE


def check_trees(leaves: Leaves) -> None:
    """Each tree is in order and says what is the greatest measure below each node; no other node is taken."""
    taken = [node for number in range(len(leaves.root)) for node in _check_tree(leaves, number)]
    assert sorted(taken + leaves.pool.free.tolist()) == list(range(leaves.pool.capacity))


def _check_tree(leaves: Leaves, number: int) -> list[int]:
    """The nodes of a tree."""
    root, levels, keys = int(leaves.root[number]), int(leaves.levels[number]), leaves.sought.shape[1]
    if root == NONE:
        assert levels == 0
        return []
    assert levels == 0 or leaves.size[root] > 1, "a root with one child is not needed"
    nodes, below = [root], [(root, None, None)]
    for _ in range(levels):
        children = []
        for node, least, limit in below:
            rows = _rows(leaves, node)
            lower = [least, *(_key(row, keys) for row in rows[1:])]
            measures = [leaves.most[row[keys]] for row in rows]
            assert leaves.measure == NONE or leaves.most[node] == max(measures)
            children += zip((row[keys] for row in rows), lower, [*lower[1:], limit], strict=True)
        below = children
        nodes += [node for node, _, _ in below]
    before = NONE
    for leaf, least, limit in below:
        rows = _rows(leaves, leaf)
        found = [_key(row, keys) for row in rows]
        assert found == sorted(set(found)), "keys are in order and differ"
        assert least is None or least <= found[0]
        assert limit is None or found[-1] < limit
        assert leaves.measure == NONE or leaves.most[leaf] == max(row[leaves.measure] for row in rows)
        assert leaves.before[leaf] == before
        assert before == NONE or leaves.after[before] == leaf
        before = leaf
    assert leaves.after[before] == NONE
    return nodes


def _rows(leaves: Leaves, node: int) -> list[list[int]]:
    rows = leaves.cells[node * BREADTH : node * BREADTH + leaves.size[node]].tolist()
    assert rows, "no node is empty"
    return rows


def _key(row: list[int], keys: int) -> tuple[int, ...]:
    return tuple(row[:keys])
