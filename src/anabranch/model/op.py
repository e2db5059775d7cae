"""What happens to a row of a table."""

from enum import IntEnum


class Op(IntEnum):
    """What happens to a row, as a number in a column."""

    INSERT = 0
    UPDATE = 1
    DELETE = 2
    UPSERT = 3
    SNAPSHOT = 4
    INCREMENTAL = 5
