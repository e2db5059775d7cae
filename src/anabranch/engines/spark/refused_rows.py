"""Refused rows of an edge as people read them: in their columns, with the place where they were read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from anabranch.engines.spark.order import place_text
from anabranch.kernels.answers import violations
from anabranch.kernels.kernel import Refused
from anabranch.model.batch import Batch
from anabranch.model.clock_columns import dial_of
from anabranch.model.validity import Violation
from anabranch.rows.reading import Read
from anabranch.rows.refusal import Refusal, change_text, refusal


@dataclass(frozen=True, slots=True)
class RefusedRows:
    """What refusals of rows of an edge are made with."""

    source: str
    """The sender of rows that do not name one."""
    replicated: bool = False
    roles: Mapping[str, str] = field(default_factory=dict)
    """The columns of the rows that are not payload, by role; none: elements are written in our notation."""
    by_task: bool = False
    """Rows have no order of their own, and are numbered by the task that read them."""
    clock: pa.DataType | None = None
    among_others: bool = False
    """The query has other sources, whose replicas may have the same names."""

    def of_read(self, refused: Refused, read: Read) -> Iterator[Refusal]:
        """Rows that steps refuse where they are read; their origins are their places among what was read."""
        assert refused.batch.origin is not None, "steps keep the origins of rows"
        rows = refused.batch.origin.number.tolist()
        for row, violation in zip(rows, violations("", refused, dial_of(self.clock)), strict=True):
            sender = read.replicas[read.replica[row]]
            channel, number = read.channels[read.channel[row]], int(read.sequence[row])
            yield self.refusal(replace(violation, position=number), sender, channel)

    def refusal(
        self, violation: Violation, replica: str, channel: str, change: Batch | None = None
    ) -> Refusal:
        """One row, which is of a channel; its position is its number there.

        ``change`` is the row where it is a change of a table, whose element has less than it.
        """
        sender, number = replica if self.replicated else self.source, violation.position
        own = self._own(replica, channel, number)
        place = place_text(sender, channel, number, by_task=self.by_task)
        if self.replicated and self.among_others:
            place = f"{self.source}: {place}"
        named = replace(violation, input=sender)
        raw = None if change is None else change_text(change, 0, self.roles, own)
        return refusal(named, place, self.clock, raw=raw, roles=self.roles, own=own)

    def _own(self, replica: str, channel: str, number: int) -> dict[str, Any]:
        """The columns that name the sender of a row, and its number."""
        values = {"replica": replica, "channel": channel, "sequence": number}
        return {column: values[role] for role, column in self.roles.items() if role in values}
