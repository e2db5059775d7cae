"""Which columns come of an aggregate over rows of a schema."""

import pyarrow as pa

from anabranch.expressions.aggregates import Aggregate, aggregate_type
from anabranch.expressions.evaluation import type_of
from anabranch.expressions.own_aggregate import OwnFunctions
from anabranch.expressions.tree import ExpressionError, columns_of
from anabranch.model.spelling import did_you_mean

RANK = "rank"
"""The column that says the rank of a row."""


def aggregate_columns(name: str, one: Aggregate, schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    """The columns of an aggregate that is called by a name, with their types.

    >>> from anabranch.expressions.expression import col
    >>> rows = pa.schema({"price": pa.int32(), "item": pa.string()})
    >>> aggregate_columns("best", col("price").top_k(3, carry=["item"]), rows)
    [('best', DataType(int32)), ('item', DataType(string)), ('rank', DataType(int64))]
    """
    if one.function == "aggregate":
        return [(name, OwnFunctions.of(one, schema).value)]
    kind = aggregate_type(one, None if one.argument is None else type_of(one.argument, schema))
    if one.function != "top_k":
        return [(name, kind)]
    for carried in one.option("carry"):
        if carried not in schema.names:
            error = ExpressionError(
                f"there is no column {carried!r} to carry{did_you_mean(carried, schema.names)}"
            )
            error.add_note(f"The columns are {', '.join(map(repr, schema.names))}.")
            raise error
    return [
        (name, kind),
        *((each, schema.field(each).type) for each in one.option("carry")),
        (RANK, pa.int64()),
    ]


def columns_read(one: Aggregate, schema: pa.Schema) -> list[str]:
    """The columns that an aggregate looks at."""
    if one.function == "aggregate":
        return list(schema.names)
    read = [] if one.argument is None else list(columns_of(one.argument))
    return read + (list(one.option("carry")) if one.function == "top_k" else [])
