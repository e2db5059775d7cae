"""Changes of a table that several replicas send, as one stream of its rows: `Changes` of each, then `Merge`.

A replica may begin with a snapshot: rows that are there at a time, and nobody knows since when. It is held
back until it has met the merge (`snapshots.py`). Who begins with one, at which time, and when it meets the
merge follows from what every shard is told: first words (`begins`) and promises, never from events.

A pass is: first words, changes, promises, and then once `settle`, which lets go on who can; `advance` does
both for one replica.

Memory: a table of each replica, the merge, and of a replica that has not met the merge all that it shows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.changes import Changes
from anabranch.kernels.kernel import Refused, Report, Result, State
from anabranch.kernels.merge.merge import Merge
from anabranch.kernels.merge.status import Status
from anabranch.kernels.merge.tally import Input
from anabranch.kernels.snapshots import Beginning
from anabranch.kernels.store.saved import version_of
from anabranch.model.batch import Batch, concat
from anabranch.model.identity import Words
from anabranch.model.properties import Properties
from anabranch.model.time import BEGINNING, FOREVER

VERSION = 1


@dataclass(slots=True)
class _Replica:
    """State of one replica: its table, what it was attached with, and how far it is by its own promises."""

    table: Changes
    properties: Properties | None
    complete: bool
    reached: int = BEGINNING
    spoken: bool = False
    """It has said something, to this shard or to another."""


class MergeChanges:
    """State: the replicas, the merge of their rows, and those that begin with a snapshot."""

    def __init__(
        self, key: Sequence[str], merge: Merge, *, by_time: bool = False, numbered: bool = False
    ) -> None:
        """``key`` names the rows of a table; ``by_time`` and ``numbered`` as `Changes` has them."""
        self.key, self.by_time, self.numbered, self.merge = tuple(key), by_time, numbered, merge
        self.replicas: dict[str, _Replica] = {}
        self.waiting: dict[str, Beginning] = {}
        """The replicas that began with a snapshot and have not met the merge."""
        self.since: dict[str, tuple[int, int]] = {}
        """Of each replica that began alone the time of its snapshot, and how many rows are out since then."""
        self._events: list[Batch] = []
        self._refused: list[Refused] = []

    @property
    def held(self) -> bool:
        """Its frontier depends on events."""
        return self.merge.held

    @property
    def frontier(self) -> int:
        """The stable of the output."""
        return self.merge.frontier

    @property
    def agreed(self) -> int:
        """Where the merge is in every shard."""
        return self.merge.agreed

    @property
    def inputs(self) -> Mapping[str, Input]:
        """The replicas that are attached, by name."""
        return self.merge.inputs

    def attach(
        self,
        name: str,
        guarantee: int | None = None,
        properties: Properties | None = None,
        *,
        complete: bool = True,
    ) -> Result:
        """What comes of a replica that joins, with an empty table."""
        self._take(self.merge.attach(name, guarantee, properties, complete=complete))
        self.replicas[name] = _Replica(Changes(self.key, self.by_time, self.numbered), properties, complete)
        return self._taken()

    def detach(self, name: str) -> Result:
        """What comes of a replica that leaves; changes of it that wait fit no more."""
        self.merge.attached(name)
        self._settle()
        self._pass(name, FOREVER)
        self._take(self.merge.detach(name))
        if name in self.waiting and self.waiting[name].alone:
            self.since[name] = self.snapshots()[name]
        self.waiting.pop(name, None)
        del self.replicas[name]
        return self._taken()

    def idle(self, name: str) -> Result:
        """What comes of not waiting for a replica until it speaks again."""
        self._take(self.merge.idle(name))
        return self._taken()

    def begins(self, name: str, time: int | None = None) -> Result:
        """What comes of the first word of a replica, to this shard or another: perhaps a snapshot of a time.

        Those that began alone wait for it; it waits too, if that is with a snapshot. Later words say nothing.
        """
        replica = self.replicas[name]
        if replica.spoken:
            return self._taken()
        replica.spoken = True
        for other, one in self.waiting.items():
            if one.alone:
                self._take(self.merge.push(other, one.withdrawn()))
                self._join_again(other, one.until)
        if time is not None and replica.complete:
            until = max(time + 1, self.agreed)
            self.waiting[name] = Beginning(time, until)
            replica.table.begins = True
            self._join_again(name, until)
        return self._taken()

    def push(self, name: str, batch: Batch) -> Result:
        """What comes of changes of a replica (see `Changes`)."""
        self.merge.attached(name)
        self._take(self.begins(name))
        table = self.replicas[name].table
        result = table.push(name, batch)
        self._refuse(name, result.refused)
        events = result.events
        if name in self.waiting:
            events = self.waiting[name].hear(events)
        if len(events):
            self._take(self.merge.push(name, events))
        return self._taken()

    def advance(self, name: str, time: int) -> Result:
        """What comes of a replica being stable until a time."""
        self.promise(name, time)
        return self.settle()

    def promise(self, name: str, time: int) -> None:
        """A replica is stable until a time, which counts when the pass is settled."""
        self.merge.attached(name)
        self.replicas[name].reached = max(self.replicas[name].reached, time)

    def settle(self) -> Result:
        """What comes of all promises of a pass: every replica goes as far as it may, and who can goes on."""
        self._settle()
        return self._taken()

    def shows(
        self, name: str, identities: Words, start: NDArray[np.int64], end: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """How often a replica shows each of some rows now, as far as they can still change."""
        return self.merge.shows(name, identities, start, end)

    def snapshots(self) -> dict[str, tuple[int, int]]:
        """Of each that waits or began alone the time of its snapshot, and how many rows begin there."""
        return self.since | {name: (one.time, one.since_snapshot) for name, one in self.waiting.items()}

    def status(self) -> Status:
        """What the merge is doing."""
        return self.merge.status()

    def report(self) -> Report:
        """What the merge holds, and the bytes of all."""
        merge = self.merge.report()
        tables = sum(replica.table.nbytes for replica in self.replicas.values())
        waiting = sum(one.nbytes for one in self.waiting.values())
        ties = sum(replica.table.ties for replica in self.replicas.values())
        counts = {**merge.counts, "tied": ties} if ties else merge.counts
        return Report(merge.live, merge.nbytes + tables + waiting, counts)

    def saved(self) -> State:
        """All of the state: that of the merge, of each table, and of each that waits."""
        parts = {"merge": self.merge.saved()}
        parts |= {f"table {name}": replica.table.saved() for name, replica in self.replicas.items()}
        parts |= {f"waiting {name}": one.saved() for name, one in self.waiting.items()}
        values: dict[str, Any] = {
            "key": list(self.key),
            "since": self.since,
            "replicas": {name: [one.reached, one.spoken] for name, one in self.replicas.items()},
            "parts": [[name, part.version, part.values, len(part.batches)] for name, part in parts.items()],
        }
        return State(VERSION, values, [batch for part in parts.values() for batch in part.batches])

    @classmethod
    def load(
        cls, saved: State, *, by_time: bool = False, numbered: bool = False, generalise: bool = False
    ) -> "MergeChanges":
        """The kernel whose state was saved."""
        _, values, batches = version_of(saved, VERSION, "a merge of changes")
        parts: dict[str, State] = {}
        for name, version, of_part, count in values["parts"]:
            parts[name], batches = State(version, of_part, batches[:count]), batches[count:]
        merge = Merge.load(parts["merge"], generalise=generalise)
        kernel = cls(values["key"], merge, by_time=by_time, numbered=numbered)
        kernel.since = {name: (time, rows) for name, (time, rows) in values["since"].items()}
        for name, (reached, spoken) in values["replicas"].items():
            table = Changes.load(parts[f"table {name}"], by_time=by_time, numbered=numbered)
            side = kernel.inputs[name].declared
            kernel.replicas[name] = _Replica(table, side.properties, side.complete, reached, spoken)
            if f"waiting {name}" in parts:
                kernel.waiting[name] = Beginning.load(parts[f"waiting {name}"])
        return kernel

    def _take(self, result: Result) -> None:
        if len(result.events):
            self._events.append(result.events)
        self._refused += result.refused

    def _taken(self) -> Result:
        """All that has come of a call."""
        result = Result(concat(self._events), tuple(self._refused))
        self._events, self._refused = [], []
        return result

    def _refuse(self, name: str, refused: Sequence[Refused]) -> None:
        """Changes of a replica were not used."""
        self.merge.tallies[name].refused += sum(len(group.batch) for group in refused)
        self._refused += [group._replace(name=name) for group in refused]

    def _join_again(self, name: str, guarantee: int) -> None:
        """Let a replica guarantee no more than what ends at or after a time; what it showed is forgotten."""
        replica = self.replicas[name]
        self._take(self.merge.detach(name))
        time = None if guarantee == BEGINNING else guarantee
        self._take(self.merge.attach(name, time, replica.properties, complete=replica.complete))

    def _pass(self, name: str, time: int) -> None:
        """Let the table of a replica know how far it is."""
        self._refuse(name, self.replicas[name].table.advance(name, time).refused)

    def _settle(self) -> None:
        """Let every replica promise what it may, until nobody goes on.

        Nobody goes beyond a time at which one that begins with a snapshot meets the merge before it has.
        """
        going = True
        while going:
            until = self._until()
            for name, one in sorted(self.inputs.items(), key=lambda item: not self.replicas[item[0]].spoken):
                reached = self.replicas[name].reached
                if self.waiting and not self.replicas[name].spoken:
                    continue
                if name in self.waiting and not self.waiting[name].alone:
                    self._pass(name, reached)
                elif min(reached, until) > one.frontier:
                    self._pass(name, min(reached, until))
                    self._take(self.merge.advance(name, min(reached, until)))
            going = self._go_on()

    def _until(self) -> int:
        """How far replicas may go before one that begins with a snapshot has met the merge."""
        alone = self.agreed if self._silent() else FOREVER
        times = [
            min(one.time, alone) if one.alone else one.until
            for one in self.waiting.values()
            if one.alone or one.met is None
        ]
        lag = self.merge.policy.ticks if times else 0
        return min((min(time, FOREVER - lag) + lag for time in times), default=FOREVER)

    def _go_on(self) -> bool:
        """Let those meet the merge that can, and those go on that have; whether that changes anything."""
        changed = False
        for one in self.waiting.values():
            if one.met is None and one.until <= self.agreed:
                one.meet(self.merge.given())
                changed = True
        for name, one in list(self.waiting.items()):
            if one.alone and self._silent():
                continue
            if one.met is not None and self.replicas[name].reached >= one.until:
                self._begin(name, one)
                changed = True
        return changed or self._begin_alone()

    def _begin(self, name: str, one: Beginning) -> None:
        """A replica has met the merge, and goes on as any other."""
        if one.alone:
            self.since[name] = self.snapshots()[name]
        begun, table = one.begun(self.agreed), self.replicas[name].table
        del self.waiting[name]
        table.begins = False
        if len(begun.elements):
            self._take(self.merge.push(name, begun.elements))
        table.begin_at(begun.rows.told_apart_by(table.key).identities, begun.rows.start)

    def _awaited(self) -> set[str]:
        """The replicas that are not idle."""
        return {name for name, one in self.inputs.items() if not self.merge.sides.idle[one.number]}

    def _silent(self) -> set[str]:
        """Replicas that are awaited, and may vouch for any time.

        One that has come to the end of time and never said a word does not, and others come before it.
        """
        silent = {name for name in self._awaited() if not self.replicas[name].spoken}
        return {name for name in silent if self.replicas[name].reached < FOREVER}

    def _begin_alone(self) -> bool:
        """Where nobody has said anything of the time before any snapshot, the earliest begins alone.

        While one is awaited that may, nothing goes on: the rows are out, and can be taken back.
        """
        inputs = self._awaited() - self._silent()
        waiting = {name for name, one in self.waiting.items() if one.met is None}
        if not inputs or not inputs <= waiting:
            return False
        name = min(inputs, key=lambda name: (self.waiting[name].until, name))
        one = self.waiting[name]
        self._join_again(name, self.agreed)
        one.meet(self.merge.given(), alone=True)
        said = one.said()
        if len(said):
            self._take(self.merge.push(name, said))
        return True
