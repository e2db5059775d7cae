"""The values of an expression for rows, and the rows that have none."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.expressions.compilation import compiled
from anabranch.expressions.program import FAILURES, Failed, Node, Rows, as_array
from anabranch.expressions.tree import Tree

_NO_ROWS = np.empty(0, np.int64)
_NO_ROWS.flags.writeable = False


class Values(NamedTuple):
    """One value per row, null for those that failed."""

    values: pa.Array
    failed: NDArray[np.int64]
    """The rows that failed, in order."""
    why: list[str]
    """The reason of each."""


def type_of(tree: Tree, schema: pa.Schema) -> pa.DataType:
    """The type of a tree's values on rows of a schema; raises where it has no meaning on them.

    >>> from anabranch.expressions.expression import col
    >>> type_of((col("small") * 2).tree, pa.schema({"small": pa.int8()}))
    DataType(int8)
    """
    return compiled(tree, schema).type


def evaluate(
    tree: Tree,
    rows: pa.RecordBatch,
    start: NDArray[np.int64] | None = None,
    end: NDArray[np.int64] | None = None,
) -> Values:
    """The values of a tree for rows; each row's is its own, whichever rows are with it.

    >>> from anabranch.expressions.expression import col
    >>> rows = pa.record_batch({"sum": [7, 7, None], "count": [2, 0, 0]})
    >>> found = evaluate((col("sum") // col("count")).tree, rows)
    >>> found.values.to_pylist(), found.failed.tolist(), found.why
    ([3, None, None], [1], ['divide by zero'])
    """
    return Evaluation(tree).of(rows, start, end)


class Evaluation:
    """A tree that is evaluated again and again: what it means on the columns of the last rows is kept.

    To find it by the hashes of a tree and a schema takes 7 µs, a third of the time of one row.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._known: tuple[pa.Schema, Node] | None = None

    def __reduce__(self) -> tuple[type["Evaluation"], tuple[Tree]]:
        """As the tree alone: functions of Arrow do not travel."""
        return Evaluation, (self.tree,)

    def of(
        self,
        rows: pa.RecordBatch,
        start: NDArray[np.int64] | None = None,
        end: NDArray[np.int64] | None = None,
    ) -> Values:
        """The values for rows, as `evaluate` gives them."""
        if self._known is None or not self._known[0].equals(rows.schema):
            self._known = rows.schema, compiled(self.tree, rows.schema)
        return _values(self._known[1], Rows(rows, start, end))


def _values(node: Node, given: Rows) -> Values:
    rows = given.batch
    try:
        return Values(as_array(node.run(given), rows.num_rows), _NO_ROWS, [])
    except FAILURES:
        failed: Failed = {}
        found = as_array(node.careful(given, failed), rows.num_rows)
    if not failed:
        return Values(found, _NO_ROWS, [])
    places = sorted(failed)
    lost = np.zeros(rows.num_rows, np.bool_)
    lost[places] = True
    found = found.take(pa.array(np.arange(rows.num_rows), mask=lost))
    return Values(found, np.array(places, np.int64), [failed[place] for place in places])
