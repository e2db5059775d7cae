"""Events on their way to being final."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from anabranch.model.dialects.agenda import Agenda
from anabranch.model.dialects.error import no_such_event
from anabranch.model.dialects.payload_key import PayloadKey, payload_key
from anabranch.model.elements import Adjust, Insert, Payload
from anabranch.model.time import BEGINNING, FOREVER


@dataclass(frozen=True, slots=True)
class _Row:
    key: PayloadKey
    payload: Payload = field(compare=False)


@dataclass(slots=True)
class Moment:
    """What a stable made final about one time: the rows that end, with their starts, and those that start."""

    time: int
    ended: list[tuple[Payload, int]] = field(default_factory=list)
    started: list[Payload] = field(default_factory=list)


@dataclass(slots=True)
class Settling:
    """The events of a stream, until stables have settled their start and their end.

    Memory: the events that are not fully frozen.
    """

    frontier: int = BEGINNING
    _to_start: Agenda[tuple[_Row, int]] = field(default_factory=Agenda)
    """Rows with their ends, by start."""
    _to_end: Agenda[tuple[_Row, int]] = field(default_factory=Agenda)
    """Rows with their starts, by end."""

    def insert(self, element: Insert) -> None:
        """One more event."""
        row = _Row(payload_key(element.payload), element.payload)
        self._to_start.add(element.start, (row, element.end))

    def adjust(self, element: Adjust) -> None:
        """The event has another end, or none and is gone."""
        row = _Row(payload_key(element.payload), element.payload)
        if element.start < self.frontier:
            there = self._to_end.discard(element.old_end, (row, element.start))
            self._to_end.add(element.end, (row, element.start))
        else:
            there = self._to_start.discard(element.start, (row, element.old_end))
            if not element.removes:
                self._to_start.add(element.start, (row, element.end))
        if not there:
            raise no_such_event(element)

    def settle(self, stable: int) -> Iterator[Moment]:
        """What is final at a stable and was not before, in the order of time."""
        moments: defaultdict[int, Moment] = defaultdict(lambda: Moment(0))
        for start, (row, end) in self._to_start.take_before(stable):
            moments[start].started.append(row.payload)
            self._to_end.add(end, (row, start))
        for end, (row, start) in self._to_end.take_before(stable):
            moments[end].ended.append((row.payload, start))
        self.frontier = stable
        if stable == FOREVER:
            self._to_end = Agenda()
        for time in sorted(moments):
            moments[time].time = time
            yield moments[time]

    @property
    def unsettled(self) -> int:
        """How many events have not started for good, or have an end that may still move."""
        return len(self._to_start) + len(self._to_end) - self._to_end.count_at(FOREVER)
