"""What the rows of a table are, and how a micro-batch changes them, wherever the table is stored.

| kind | a row is |
|---|---|
| ``elements`` | one element, as it came; rows are only added |
| ``history`` | one event: the payload, ``valid_from``, ``valid_to`` (null: infinite) |
| ``current`` | the latest event of a key: the payload, ``valid_from`` |

A view is asked for the changes that a micro-batch makes, and asks in turn for the rows of the table that they
depend on. It gives each row that changes once, so that one commit makes all of them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.connectors.tables.micro_batch import MicroBatch
from anabranch.connectors.tables.table_error import TableError
from anabranch.model.clock_columns import times
from anabranch.rows.element_columns import REFUSED

FROM, TO = "valid_from", "valid_to"


class Change(IntEnum):
    """What happens to a row, as a number in a column."""

    INSERT = 0
    UPDATE = 1
    DELETE = 2


@dataclass(frozen=True)
class Changes:
    """Rows as they are after a micro-batch, or were before it where they are deleted."""

    rows: pa.Table
    change: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.change)

    @property
    def only_inserts(self) -> bool:
        """No row that was there changes."""
        return not self.change.any()


@dataclass(frozen=True)
class Wanted:
    """Rows of a table: those with one of these ids, and what else is known of them."""

    column: str
    ids: Any
    columns: tuple[str, ...]
    between: tuple[Any, Any] | None = None
    """The least and the greatest ``valid_from``."""


Find: TypeAlias = Callable[[Wanted], pa.Table]


class View(Protocol):
    """One kind of table."""

    @property
    def kind(self) -> str:
        """What the kind is called."""

    @property
    def by(self) -> tuple[str, ...]:
        """The columns that name a row; none where rows never change."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""

    def changes(self, batch: MicroBatch, find: Find) -> Changes:
        """What a micro-batch changes."""


@dataclass(frozen=True)
class Elements:
    """Every element is a row."""

    columns: pa.Schema
    kind = "elements"
    by = ()

    @property
    def schema(self) -> pa.Schema:
        """The columns of element rows."""
        return self.columns

    def changes(self, batch: MicroBatch, find: Find) -> Changes:
        """All rows are new."""
        return Changes(batch.rows, np.zeros(batch.rows.num_rows, np.int8))


def plain_columns(rows: pa.Schema) -> pa.Schema:
    """The columns of element rows as a table holds them: without refused rows, and any value may be null."""
    fields = [field for field in rows if field.name != REFUSED]
    return pa.schema([pa.field(field.name, nullable(field.type)) for field in fields])


def nullable(dtype: pa.DataType) -> pa.DataType:
    """The same type, in which any value may be null."""
    if pa.types.is_struct(dtype):
        return pa.struct([pa.field(field.name, nullable(field.type)) for field in dtype])
    if pa.types.is_map(dtype):
        return pa.map_(nullable(dtype.key_type), nullable(dtype.item_type))
    if pa.types.is_list(dtype):
        return pa.list_(nullable(dtype.value_type))
    return dtype


def check_names(payload: Iterable[str], own: Iterable[str], kind: str) -> None:
    """Raise where a payload column has the name of a column that the table adds."""
    taken = {name.lower() for name in own}
    for name in payload:
        if name.lower() in taken:
            error = TableError(
                f"a table of kind {kind!r} has a column {name.lower()!r} of its own, and so has the payload"
            )
            error.add_note("Rename the column before the merge, or write kind='elements'.")
            raise error


def missing(payload: Mapping[str, Any], start: int, clock: pa.DataType) -> TableError:
    """An event is taken away that the table does not have."""
    moment = times(np.array([start]), np.zeros(1, np.bool_), clock)[0]
    event = {name: value for name, value in payload.items() if value is not None}
    error = TableError(f"the event {event} of {moment} changes, and the table does not have it")
    error.add_note(
        "Rows of the table were changed or removed by someone else. Restore the last version that this query "
        "wrote, or begin again with a new table and a new checkpoint."
    )
    return error


def codes(*columns: NDArray[Any]) -> NDArray[np.int64]:
    """A number for each row, equal where all columns are, in the order of the columns."""
    order = np.lexsort(columns[::-1])
    new = np.zeros(len(order), np.bool_)
    for column in columns:
        new[1:] |= column[order][1:] != column[order][:-1]
    found = np.empty(len(order), np.int64)
    found[order] = np.cumsum(new)
    return found


def ranks(sorted_codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many rows of its code stand before each row; equal codes stand together."""
    places = np.arange(len(sorted_codes))
    first = np.ones(len(sorted_codes), np.bool_)
    first[1:] = sorted_codes[1:] != sorted_codes[:-1]
    return places - np.maximum.accumulate(np.where(first, places, 0)) if len(places) else places
