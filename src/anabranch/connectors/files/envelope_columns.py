"""The columns of a table with those that envelopes add, in types of Arrow's or of Spark's."""

import pyarrow as pa

from anabranch.connectors.files.debezium import Debezium
from anabranch.engines.spark.session.row_types import Held, with_columns


def with_change(columns: Held, form: Debezium, zone: str = "UTC") -> Held:
    """The columns of a table, and what happened to a row and when."""
    taken = [name for name in columns.names if name.lower() in (form.op.lower(), form.time.lower())]
    if taken:
        error = ValueError(
            f"envelopes add the columns {form.op!r} and {form.time!r}, the table has {taken[0]!r}"
        )
        error.add_note("Call the added ones something else: format=Debezium(op='…', time='…').")
        raise error
    return with_columns(columns, {form.op: pa.string(), form.time: pa.timestamp("us", zone)})
