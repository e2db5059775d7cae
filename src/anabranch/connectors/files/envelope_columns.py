"""The columns of a table with those that envelopes add, in types of Spark's."""

from typing import TYPE_CHECKING

from anabranch.connectors.files.debezium import Debezium

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def with_change(struct: "StructType", form: Debezium) -> "StructType":
    """The columns of a table, and what happened to a row and when."""
    from pyspark.sql.types import StringType, StructType, TimestampType

    taken = [name for name in struct.names if name.lower() in (form.op.lower(), form.time.lower())]
    if taken:
        error = ValueError(
            f"envelopes add the columns {form.op!r} and {form.time!r}, the table has {taken[0]!r}"
        )
        error.add_note("Call the added ones something else: format=Debezium(op='…', time='…').")
        raise error
    return StructType(list(struct.fields)).add(form.op, StringType()).add(form.time, TimestampType())
