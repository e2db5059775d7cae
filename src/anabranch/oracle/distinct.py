"""Of point events that are equal on some columns and start together the one that comes first in some order.

Where all columns are told apart there is no choice, and no order is needed.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from anabranch.oracle.relation import Row


def distinct(
    rows: Iterable[Row], columns: Sequence[str] | None = None, order: Callable[[Row], Any] | None = None
) -> list[Row]:
    """Every event once, or of each group the first."""
    if columns is None:
        return list(dict.fromkeys(rows))
    assert order is not None, "there is a choice, and it does not depend on the order of arrival"
    found: dict[tuple[Any, ...], Row] = {}
    for row in sorted(rows, key=order):
        found.setdefault(_group(row, columns), row)
    return list(found.values())


def _group(row: Row, columns: Sequence[str]) -> tuple[Any, ...]:
    payload = dict(row[0])  # type: ignore[call-overload]
    return (*(payload.get(name) for name in columns), row[1])
