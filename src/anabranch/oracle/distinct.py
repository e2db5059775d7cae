"""Of point events that are equal on some columns and start together one.

Which one is for whoever says it, so what is meant is a condition: `is_distinct`. Where all columns are told
apart there is no choice: `distinct`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from anabranch.oracle.relation import Row


def distinct(rows: Iterable[Row]) -> list[Row]:
    """Every event once."""
    return list(dict.fromkeys(rows))


def is_distinct(rows: Sequence[Row], found: Sequence[Row], columns: Sequence[str]) -> bool:
    """What was found is one event for each group that there is, and each is there."""
    groups = Counter(_group(row, columns) for row in found)
    return (
        {*found} <= {*rows}
        and {*groups} == {_group(row, columns) for row in rows}
        and len(groups) == len(found)
    )


def _group(row: Row, columns: Sequence[str]) -> tuple[Any, ...]:
    payload = dict(row[0])  # type: ignore[call-overload]
    return (*(payload.get(name) for name in columns), row[1])
