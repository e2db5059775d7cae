"""A table of validity intervals: one row for each event of the relation.

    sensor  level  valid_from  valid_to  _event  _copy
    a       1.5    10:00       10:05     7f1c…   0
    a       1.6    10:05       null      03a9…   0

Two columns are not of the relation. ``_event`` is the identity of the payload (16 bytes), so that rows are
found by one comparison whatever the payload is made of. ``_copy`` tells true duplicates apart, 0 for the
first: a MERGE needs rows that differ, and a bag has rows that do not.

Of the table only the rows of events are read that a micro-batch adds or takes away, without their payloads;
the times at which they start tell which files those can be in. An event whose end moves is one row that is
updated: copies that go are given to those that come with the same payload and start.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.connectors.tables.micro_batch import MicroBatch, ids_of, ticks_of, words_of
from anabranch.connectors.tables.views import (
    FROM,
    TO,
    Change,
    Changes,
    Find,
    Wanted,
    check_names,
    codes,
    missing,
    ranks,
)
from anabranch.model.clock_columns import times
from anabranch.model.events import Events
from anabranch.model.time import FOREVER

EVENT, COPY = "_event", "_copy"


@dataclass(frozen=True)
class History:
    """Every event is a row."""

    payload: pa.Schema
    clock: pa.DataType
    kind = "history"
    by = (EVENT, FROM, COPY)

    def __post_init__(self) -> None:
        check_names(self.payload.names, (FROM, TO, EVENT, COPY), self.kind)

    @property
    def schema(self) -> pa.Schema:
        """The payload, the lifetime, and what tells rows apart."""
        times = [pa.field(FROM, self.clock), pa.field(TO, self.clock)]
        return pa.schema([*self.payload, *times, pa.field(EVENT, pa.binary()), pa.field(COPY, pa.int32())])

    def changes(self, batch: MicroBatch, find: Find) -> Changes:
        """The events that are more than before are rows that come, those that are fewer are rows that go."""
        net = batch.net
        if not len(net):
            return Changes(self.schema.empty_table(), np.zeros(0, np.int8))
        least, greatest = times(
            np.array([net.start.min(), net.start.max()]), np.zeros(2, np.bool_), self.clock
        )
        there = find(Wanted(EVENT, ids_of(net.identity), (EVENT, FROM, TO, COPY), (least, greatest)))
        copy = there.column(COPY).to_numpy().astype(np.int64)
        words = np.concatenate([net.identity, words_of(there.column(EVENT))])
        group = codes(np.concatenate([net.start, ticks_of(there.column(FROM))]), *words.T)
        event = codes(group, np.concatenate([net.end, ticks_of(there.column(TO))]))
        (group, old_group), (event, old_event) = np.split(group, [len(net)]), np.split(event, [len(net)])

        going = self._going(net, event, old_event, copy)
        going = going[np.lexsort((copy[going], old_group[going]))]
        coming = np.repeat(np.arange(len(net)), np.maximum(net.count, 0))
        coming = coming[np.argsort(group[coming], kind="stable")]
        groups = max(group.max(), old_group.max(initial=0)) + 1
        fewer, more = (np.bincount(part, minlength=groups) for part in (old_group[going], group[coming]))

        rank = ranks(group[coming])
        moved = rank < fewer[group[coming]]
        last = np.full(groups, -1)
        np.maximum.at(last, old_group, copy)
        copies = (last - fewer)[group[coming]] + 1 + rank
        copies[moved] = copy[going][((np.cumsum(fewer) - fewer)[group[coming]] + rank)[moved]]
        gone = going[ranks(old_group[going]) >= more[old_group[going]]]

        row_of = np.empty(max(event.max(), old_event.max(initial=0)) + 1, np.int64)
        row_of[event] = np.arange(len(net))
        rows = np.concatenate([coming, row_of[old_event[gone]]])
        change = np.full(len(rows), Change.DELETE, np.int8)
        change[: len(coming)] = np.where(moved, Change.UPDATE, Change.INSERT)
        return Changes(self._rows(net.take(rows), np.concatenate([copies, copy[gone]])), change)

    def _going(
        self, net: Events, event: NDArray[np.int64], old_event: NDArray[np.int64], copy: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Which rows of the table the events are that are taken away: of equal ones the last copies."""
        most = max(event.max(), old_event.max(initial=0)) + 1
        fewer = np.zeros(most, np.int64)
        fewer[event] = np.maximum(-net.count, 0)
        order = np.lexsort((-copy, old_event))
        going = order[ranks(old_event[order]) < fewer[old_event[order]]]
        short = np.flatnonzero(fewer[event] > np.bincount(old_event[going], minlength=most)[event])
        if len(short):
            absent, _ = next(net.take(short[:1]).rows())
            raise missing(absent.payload, absent.start, self.clock)
        return going

    def _rows(self, events: Events, copies: NDArray[np.int64]) -> pa.Table:
        columns = [
            *events.payload.columns,
            times(events.start, np.zeros(len(events), np.bool_), self.clock),
            times(events.end, events.end == FOREVER, self.clock),
            ids_of(events.identity),
            pa.array(copies, pa.int32()),
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)
