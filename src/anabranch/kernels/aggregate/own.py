"""A user's own aggregate: functions over Arrow arrays that lift rows, combine states two by two, and finish.

``lift`` gives a state for each row of a record batch; ``combine`` one for each pair of two arrays of states,
``remove`` the first of each pair without the second, and ``finish`` a value for each state. Rows of a slot
are combined as neighbours, round by round, so that functions see arrays and not rows, and in order where rows
come in order. Where ``lift`` or ``finish`` raises, the rows or groups for which it does are refused.

Memory: a state for each slot, and as many again before those that are no longer referred to are let go.
"""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.expressions.aggregates import Aggregate
from anabranch.expressions.own_aggregate import OwnFunctions
from anabranch.expressions.tree import ExpressionError
from anabranch.kernels.aggregate.column import Column, Slots, Values
from anabranch.kernels.aggregate.part import Said
from anabranch.model.batch import Batch
from anabranch.model.payloads import PayloadStore
from anabranch.model.pool import grown
from anabranch.model.slots import NONE


class Own:
    """State: the states of slots, in Arrow's columns."""

    def __init__(self, one: Aggregate, schema: pa.Schema) -> None:
        self.functions = OwnFunctions.of(one, schema)
        self.states = States(self.functions)

    @property
    def nbytes(self) -> int:
        """None beside the states."""
        return 0

    def read(self, batch: Batch) -> tuple[pa.Array, dict[int, str]]:
        """The state of each row."""
        functions = self.functions
        return _halved(functions.lifted, batch.payload, len(batch), functions.state)

    def add(self, slots: Slots, array: pa.Array, start: NDArray[np.int64], sign: int) -> None:
        """Combine the states of rows with those of their slots, or take them away."""
        self.states.add(Values(slots, array, start), sign)

    def all(self) -> list[Column]:
        """The states."""
        return [self.states]

    def compact(self) -> None:
        """Forget states that no slot has."""
        self.states.compact()

    def finish(self, slots: Slots) -> Said:
        """The values of slots."""
        functions = self.functions
        there = self.states.place[slots] >= 0
        states = self.states.at(slots[there])
        values, reasons = _halved(functions.finished, states, len(states), functions.value)
        rows = np.flatnonzero(there)
        array = values.take(pa.array(np.cumsum(there) - 1, mask=~there))
        if not reasons:
            return Said(array)
        whys = {int(rows[place]): why for place, why in reasons.items()}
        failed = np.zeros(len(slots), np.bool_)
        failed[list(whys)] = True
        return Said(array, failed, whys=whys)

    def saved(self, slots: Slots) -> list[pa.RecordBatch]:
        """The states of slots."""
        return [self.states.saved(slots)]

    def load(self, slots: Slots, batches: Iterator[pa.RecordBatch]) -> None:
        """What was saved."""
        self.states.load(slots, next(batches))


class States:
    """One state by slot."""

    invertible: ClassVar[bool] = False
    """What a user's function takes away may leave a trace, as where states are floats."""

    def __init__(self, functions: OwnFunctions) -> None:
        self.functions = functions
        self.place = np.zeros(0, np.int64)
        """Where the state of each slot is; NONE: it has none."""
        self.store = PayloadStore()
        self.used = 0

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return self.place.nbytes + self.store.nbytes

    def with_room(self, capacity: int) -> None:
        """Have this many slots."""
        self.place = grown(self.place, capacity, NONE)

    def at(self, slots: Slots) -> pa.Array:
        """The states of slots, each of which has one."""
        if not len(slots):
            return pa.array([], self.functions.state)
        return self.store.at(self.place[slots]).column(0)

    def add(self, values: Values, sign: int) -> None:
        """Combine states with those of their slots, or take them away."""
        slots, states = self._reduced(values.slots, values.array)
        there = self.place[slots] >= 0
        if sign < 0:
            assert there.all(), "what is taken away was there"
            self._put(slots, self.functions.removed(self.at(slots), states))
            return
        old, new = np.flatnonzero(there), np.flatnonzero(~there)
        combined = self.functions.combined(self.at(slots[old]), states.take(pa.array(old)))
        self._put(slots[old], combined)
        self._put(slots[new], states.take(pa.array(new)))

    def merge(self, into: Slots, other: Slots, sign: int = 1) -> None:
        """Combine with the states that other slots have."""
        assert sign > 0, "states are combined and not taken away"
        there = self.place[other] >= 0
        if there.any():
            self.add(Values(into[there], self.at(other[there]), np.empty(0, np.int64)), 1)

    def clear(self, slots: Slots) -> None:
        """No states."""
        self.used -= int(np.count_nonzero(self.place[slots] >= 0))
        self.place[slots] = NONE

    def compact(self) -> None:
        """Forget states that no slot has."""
        if self.store.crowded(self.used):
            self.store.compact(self.place, np.flatnonzero(self.place >= 0))

    def saved(self, slots: Slots) -> pa.RecordBatch:
        """Which of slots have states, and these."""
        there = np.flatnonzero(self.place[slots] >= 0)
        return pa.RecordBatch.from_arrays([pa.array(there), self.at(slots[there])], names=["slot", "state"])

    def load(self, slots: Slots, rows: pa.RecordBatch) -> None:
        """The states as they were saved."""
        self._put(slots[rows.column("slot").to_numpy()], rows.column("state"))

    def _put(self, slots: Slots, states: pa.Array) -> None:
        if not len(slots):
            return
        self.used += int(np.count_nonzero(self.place[slots] < 0))
        rows = self.store.admit(pa.RecordBatch.from_arrays([states], names=["state"]))
        self.place[slots] = self.store.next_place + np.arange(len(slots))
        self.store.add(rows)
        self.compact()

    def _reduced(self, slots: Slots, states: pa.Array) -> tuple[Slots, pa.Array]:
        """One state for each slot that occurs: neighbours are combined until each is alone."""
        order = np.argsort(slots, kind="stable")
        slots, states = slots[order], states.take(pa.array(order))
        while True:
            new = np.diff(slots, prepend=-1) != 0
            if new.all():
                return slots, states
            first = np.flatnonzero(new)
            rank = np.arange(len(slots)) - first[np.cumsum(new) - 1]
            left = np.flatnonzero(rank % 2 == 0)
            paired = np.append(~new[1:], False)[left]
            both = self.functions.combined(
                states.take(pa.array(left[paired])), states.take(pa.array(left[paired] + 1))
            )
            states = _chosen(both, states.take(pa.array(left[~paired])), paired)
            slots = slots[left]


def _chosen(one: pa.Array, other: pa.Array, where: NDArray[np.bool_]) -> pa.Array:
    """The values of one array where a mask is true, and of another where it is not, each in its order."""
    if where.all():
        return one
    places = np.where(where, np.cumsum(where) - 1, len(one) + np.cumsum(~where) - 1)
    return pa.concat_arrays([one, other]).take(pa.array(places))


def _halved(
    function: Callable[[Any], pa.Array], rows: Any, count: int, kind: pa.DataType
) -> tuple[pa.Array, dict[int, str]]:
    """What a function gives for rows; those for which it raises are null, with the reason.

    Where it raises, the rows are halved until those for which it does stand alone.
    """
    parts: list[pa.Array] = []
    reasons: dict[int, str] = {}

    def part(begin: int, length: int) -> None:
        try:
            parts.append(function(rows.slice(begin, length)))
        except ExpressionError:
            raise
        except Exception as reason:  # whatever a user's function raises
            if length == 1:
                reasons[begin] = f"{type(reason).__name__}: {reason}"
                parts.append(pa.nulls(1, kind))
                return
            part(begin, length // 2)
            part(begin + length // 2, length - length // 2)

    if count:
        part(0, count)
    return pa.concat_arrays([pa.array([], kind), *parts]), reasons
