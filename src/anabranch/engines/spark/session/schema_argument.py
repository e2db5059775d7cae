"""The schema of rows as people give it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def struct_of(schema: "StructType | str") -> "StructType":
    """A schema of Spark's, or the DDL text of one."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    if isinstance(schema, StructType):
        return schema
    try:
        found = StructType.fromDDL(schema)
    except PySparkException as reason:
        said = str(reason).strip().split("\n")[0]
        error = ValueError(f"a schema is columns and their types, and Spark does not read {schema!r} as one")
        error.add_note(f"Write it as 'sensor string, at timestamp'. Spark says: {said}")
        raise error from None
    if not isinstance(found, StructType):
        error = ValueError(f"a schema is columns and their types, and {schema!r} is a type alone")
        error.add_note("Write it as 'sensor string, at timestamp'.")
        raise error
    return found
