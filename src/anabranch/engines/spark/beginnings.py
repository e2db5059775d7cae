"""Replicas of a shard that begin with a snapshot, until they have met the merge (`kernels/snapshots.py`).

Who begins with one, at which time, and when it meets the merge follows from what every shard is told: the
times of snapshots are in the voices of parcels, and frontiers are those of all shards.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from anabranch.engines.spark.transport.parcel import Parcel
from anabranch.kernels.snapshots import Beginning
from anabranch.model.time import FOREVER

if TYPE_CHECKING:
    from anabranch.engines.spark.shard import Shard


class Beginnings:
    """State: the replicas that begin with a snapshot, and since when rows of others are out."""

    def __init__(self, shard: "Shard") -> None:
        self.shard = shard
        self.waiting: dict[str, Beginning] = {}
        self.since: dict[str, tuple[int, int]] = {}
        """Of each replica that began alone the time of its snapshot, and how many rows are out since then."""
        self._times: dict[str, int] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of state."""
        return sum(one.nbytes for one in self.waiting.values())

    def of(self, replica: str) -> Beginning | None:
        """The beginning of a replica that has not met the merge."""
        return self.waiting.get(replica)

    def holds(self, replica: str) -> bool:
        """What a replica says is not merged yet."""
        return replica in self.waiting and not self.waiting[replica].alone

    def counted(self) -> dict[str, tuple[int, int]]:
        """Of each that waits or began alone the time of its snapshot, and how many rows begin there."""
        return self.since | {name: (one.time, one.since_snapshot) for name, one in self.waiting.items()}

    def listen(self, parcels: Iterable[Parcel]) -> None:
        """Know when the snapshots were taken whose rows are in the parcels of a micro-batch."""
        self._times = {}
        for voice in (voice for parcel in parcels for voice in parcel.voices):
            if voice.snapshot is not None:
                known = self._times.get(voice.replica, FOREVER)
                self._times[voice.replica] = min(known, voice.snapshot)

    def first_word(self, replica: str) -> None:
        """A replica begins: those that began alone wait for it; it waits too, if that is with a snapshot."""
        for name, one in self.waiting.items():
            if one.alone:
                self.shard.push(name, one.withdrawn())
                self.shard.join_again(name, one.until)
        if replica in self._times and self.shard.fragment.is_complete(replica):
            time = self._times[replica]
            until = max(time + 1, self.shard.agreed)
            self.waiting[replica] = Beginning(time, until)
            self.shard.join_again(replica, until)

    def forget(self, replica: str) -> None:
        """A replica leaves."""
        if replica in self.waiting and self.waiting[replica].alone:
            self.since[replica] = self.counted()[replica]
        self.waiting.pop(replica, None)

    def until(self) -> int:
        """How far replicas may go before one that begins with a snapshot has met the merge."""
        waiting = self.waiting.values()
        alone = self.shard.agreed if self._silent() else FOREVER
        times = [
            min(one.time, alone) if one.alone else one.until
            for one in waiting
            if one.alone or one.met is None
        ]
        lag = self.shard.fragment.policy.ticks
        return min((min(time, FOREVER - lag) + lag for time in times), default=FOREVER)

    def go_on(self) -> bool:
        """Let those meet the merge that can, and those go on that have; whether that changes anything."""
        shard, changed = self.shard, False
        for one in self.waiting.values():
            if one.met is None and one.until <= shard.agreed:
                one.meet(shard.merge.given())
                changed = True
        for name, one in list(self.waiting.items()):
            if one.alone and self._silent():
                continue
            if one.met is not None and shard.reached(name) >= one.until:
                self._begin(name, one)
                changed = True
        return changed or self._alone()

    def _begin(self, name: str, one: Beginning) -> None:
        """A replica has met the merge, and goes on as any other."""
        if one.alone:
            self.since[name] = self.counted()[name]
        begun = one.begun(self.shard.agreed)
        del self.waiting[name]
        self.shard.push(name, begun.elements)
        table = self.shard.tables[name]
        table.begin_at(begun.rows.told_apart_by(table.key).identities, begun.rows.start)

    def _inputs(self) -> set[str]:
        """The replicas that are not idle."""
        merge = self.shard.merge
        return {name for name, one in merge.inputs.items() if not merge.sides.idle[one.number]}

    def _silent(self) -> set[str]:
        """Replicas that are awaited, and may vouch for any time."""
        return {name for name in self._inputs() if not self.shard.frontiers[name]}

    def _alone(self) -> bool:
        """Where nobody has said anything of the time before any snapshot, the earliest begins alone.

        While one is awaited that may, nothing goes on: the rows are out, and can be taken back.
        """
        inputs = self._inputs() - self._silent()
        waiting = {name for name, one in self.waiting.items() if one.met is None}
        if not inputs or not inputs <= waiting:
            return False
        name = min(inputs, key=lambda name: (self.waiting[name].until, name))
        one = self.waiting[name]
        self.shard.join_again(name, self.shard.agreed)
        one.meet(self.shard.merge.given(), alone=True)
        self.shard.push(name, one.said())
        return True
