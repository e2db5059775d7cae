"""Where a source enters: who may speak, what is valid, and how far each replica has come.

A replica speaks through channels, each in its own order; it is stable until the least of what its channels
are. It is attached by its first element or an attach, and once: an attach while it is attached is refused,
one after a detach lets it begin anew. One that is detached sends nothing that is used until then. Where
progress is not in the data it follows from a bound on disorder: nothing comes more than so much after what
starts later. That counts after the pass in which it was seen, whatever is made of the row later.
Behind a gate every element is valid by its times.

A source that is not of replicas has one, which is called ``""`` and is never attached nor detached.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.kernel import Refused, State
from anabranch.model.application import BROKEN, STABLE, VALID, check_times
from anabranch.model.batch import Batch, Kind
from anabranch.model.compiled import compiled
from anabranch.model.op import Op, of_snapshot
from anabranch.model.properties import Properties
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.model.validity import Rule

VERSION = 1
_SNAPSHOT = int(Op.SNAPSHOT)


class Entrance(Protocol):
    """What a gate opens to: the place of one source in a flow."""

    def push(self, batch: Batch, name: str) -> None:
        """Valid events, and stables where they stand among them."""
        ...

    def advance(self, time: int, name: str) -> None:
        """A replica is stable until a time."""
        ...

    def begins(self, name: str, time: int | None) -> None:
        """A replica of changes speaks, here or in another shard, perhaps of a snapshot of a time."""
        ...

    def attach(
        self, name: str, guarantee: int | None, properties: Properties | None, *, complete: bool
    ) -> None:
        """A replica joins."""
        ...

    def detach(self, name: str) -> None:
        """A replica leaves."""
        ...

    def idle(self, name: str) -> None:
        """Nobody waits for a replica until it speaks again."""
        ...

    def refuse(self, refused: Refused) -> None:
        """Rows are not used."""
        ...


@dataclass(frozen=True, slots=True)
class Admission:
    """What a gate goes by."""

    replicas: bool = False
    """Who speaks has a name, comes and goes."""
    awaited: tuple[str, ...] = ()
    """Replicas that are attached from the beginning; others with their first element."""
    lossy: frozenset[str] | bool = False
    promised: Properties | None = None
    """What each replica promises."""
    disorder: int | None = None
    """How many ticks an element may come after those that start later; None: stables are in the data."""
    channels: int = 1
    """How many channels of a replica must have spoken before it is stable until anything."""
    of_changes: bool = False
    """What comes in are changes of a table."""

    def is_complete(self, replica: str) -> bool:
        """The silence of a replica is evidence."""
        return not self.lossy if isinstance(self.lossy, bool) else replica not in self.lossy


class Look(NamedTuple):
    """Elements of one channel, looked at: what is valid by its times, and how far the channel is then."""

    reached: int
    """How far the channel was before."""
    rules: NDArray[np.int8]
    stable: int
    events: int
    invalid: int
    controls: int
    latest: int
    """The greatest start of its valid events, those of a snapshot aside; BEGINNING where there is none."""


@dataclass(slots=True)
class Gate:
    """State: how far every channel of every attached replica has come, and who has left."""

    admission: Admission
    entrance: Entrance
    frontiers: dict[str, dict[str, int]] = field(default_factory=dict)
    promised: dict[str, int] = field(default_factory=dict)
    """What the flow has been told of each replica."""
    left: set[str] = field(default_factory=set)
    expected: set[str] = field(default_factory=set)
    """Attached replicas of which nothing has come: an attach of theirs is their first."""
    idling: set[str] = field(default_factory=set)
    """Replicas that are not waited for and have sent nothing since."""
    inferred: dict[tuple[str, str], int] = field(default_factory=dict)
    """Until when each channel is stable after this pass, by what was seen of it."""
    moved: set[str] = field(default_factory=set)
    """Replicas of which a channel may be further than when the flow was told last."""
    attaches: int = 0
    places: dict[str, int] = field(default_factory=dict)
    """The order in which replicas were attached, in which the flow is told of several."""
    snapshots: dict[str, int] = field(default_factory=dict)
    """Of each replica that has rows of a snapshot in this pass the least time of them."""

    def open(self) -> None:
        """Let those in who are awaited."""
        if not self.admission.replicas:
            self.frontiers[""], self.places[""] = {}, 0
        for name in self.admission.awaited:
            self.await_replica(name)

    def await_replica(self, name: str) -> None:
        """A replica that is not attached joins before anything of it has come."""
        if name not in self.frontiers:
            self._join(name, None)
            self.expected.add(name)

    def is_attached(self, name: str) -> bool:
        """Whether something has come of a replica that has not left since, so that an attach is refused."""
        return name in self.frontiers and name not in self.expected

    def attach(self, name: str, guarantee: int | None = None) -> None:
        """A replica joins that is not attached, or of which nothing has come yet."""
        assert not self.is_attached(name), "a replica is attached once until it is detached"
        if name in self.frontiers:
            if guarantee is None:
                self.expected.discard(name)
                return
            self.detach(name)
        self._join(name, guarantee)

    def _join(self, name: str, guarantee: int | None) -> None:
        self.attaches += 1
        self.places[name] = self.attaches
        self.frontiers[name] = {}
        self.promised[name] = BEGINNING
        self.left.discard(name)
        complete = self.admission.is_complete(name)
        guarantee = guarantee if complete and guarantee != BEGINNING else None
        self.entrance.attach(name, guarantee, self.admission.promised, complete=complete)

    def detach(self, name: str) -> None:
        """A replica leaves, if it has ever come; what it promised before counts."""
        self.promise()
        self.left.add(name)
        if name not in self.frontiers:
            return
        del self.frontiers[name]
        self.expected.discard(name)
        self.idling.discard(name)
        self.promised.pop(name, None)
        self.entrance.detach(name)

    def idle(self, name: str) -> None:
        """A replica is not waited for until it sends again and has caught up."""
        self.idling.add(name)
        self.entrance.idle(name)

    def idle_but(self, names: Iterable[str], sending: Container[str]) -> None:
        """Of some replicas those that are attached and do not send are not waited for."""
        for name in names:
            if name in self.frontiers and name not in sending and name not in self.idling:
                self.idle(name)

    def expect(self, name: str, channel: str) -> None:
        """A channel of an attached replica is going to speak: until it has, nothing is stable."""
        self.frontiers[name].setdefault(channel, BEGINNING)

    def forget(self, name: str, channel: str) -> None:
        """A channel is at its end: its replica is stable until the least of what the others are."""
        self.promise()
        known = self.frontiers.get(name, {})
        if len(known) > 1:
            known.pop(channel, None)
            self.moved.add(name)
        self.promise()

    def foresee(self, said: Iterable[tuple[str, Batch]]) -> None:
        """Know of the snapshots in what is going to be heard in a pass, before the first row of it is."""
        self.snapshots = {}
        for name, batch in said:
            times = batch.start[of_snapshot(batch.kind, batch.old_end)]
            if len(times):
                self.snapshots[name] = min(int(times.min()), self.snapshots.get(name, FOREVER))

    def speaks(self, name: str, channel: str) -> int:
        """A channel of an attached replica speaks, here or to another shard; how far it has come."""
        self._received(name)
        if self.admission.of_changes and self.admission.replicas:
            self.entrance.begins(name, self.snapshots.get(name))
        return self.frontiers[name].setdefault(channel, BEGINNING)

    def _received(self, name: str) -> None:
        self.expected.discard(name)
        self.idling.discard(name)

    def look(self, batch: Batch, name: str = "", channel: str = "", reached: int | None = None) -> "Look":
        """What `hear` would find of elements, without hearing them; controls are judged by `foretold`."""
        rules = np.empty(len(batch), np.int8)
        if reached is None:
            reached = self.frontiers.get(name, {}).get(channel, BEGINNING)
        columns = batch.kind, batch.start, batch.end, batch.old_end
        found = look_at(*columns, reached, self.admission.of_changes, rules)
        return Look(reached, rules, *found)

    def refused(self, batch: Batch, look: "Look") -> list[Refused]:
        """What is not valid of elements that were looked at."""
        return list(refused(batch, look.rules, look.reached, of_changes=self.admission.of_changes))

    def foretold(self, batch: Batch, name: str, channel: str, look: "Look") -> list[Refused]:
        """What `hear` would refuse of what one channel sends, without hearing it."""
        if not look.controls and self._admits(name):
            return self.refused(batch, look) if look.invalid else []
        found: list[Refused] = []
        here, attached = name in self.frontiers or name not in self.left, self.is_attached(name)
        reached, begin = look.reached, 0
        for cut in [*np.flatnonzero(batch.kind > STABLE).tolist(), len(batch)]:
            part, control = batch[begin:cut], batch[cut : cut + 1]
            begin = cut + 1
            if len(part) and not here:
                found.append(_detached(part, name))
            elif len(part):
                one = self.look(part, name, channel, reached)
                found += self.refused(part, one)
                reached, attached = one.stable, True
            if not len(control):
                break
            attaches = control.kind[0] == Kind.ATTACH
            if attaches and attached:
                found.append(_attached_twice(control, name, reached))
            elif attaches:
                here = attached = True
                reached = BEGINNING
            elif here and (attached or name in self.admission.awaited):
                here = attached = False
            else:
                found.append(_detached(control, name))
                here = False
        return found

    def _admits(self, name: str) -> bool:
        return name in self.frontiers or name not in self.left

    def hear(self, batch: Batch, name: str = "", channel: str = "", look: "Look | None" = None) -> None:
        """What one channel of a replica says next, in its order; promises count when the pass ends."""
        look = look or self.look(batch, name, channel)
        if not look.controls:
            self._elements(batch, name, channel, look)
            return
        begin = 0
        for cut in np.flatnonzero(batch.kind > STABLE).tolist():
            self._elements(batch[begin:cut], name, channel)
            self._control(batch[cut : cut + 1], name)
            begin = cut + 1
        self._elements(batch[begin:], name, channel)

    def reach(self, name: str, channel: str, time: int) -> None:
        """A channel is stable until a time, if its replica is attached; that counts from `promise` on."""
        known = self.frontiers.get(name)
        if known is not None:
            known[channel] = max(time, known.get(channel, BEGINNING))
            self.moved.add(name)

    def promise(self) -> None:
        """Tell the flow how far replicas have come, where that is further than before.

        Cost: the replicas that have moved, whatever their number.
        """
        for (name, channel), time in self.inferred.items():
            self.reach(name, channel, time)
        self.inferred = {}
        moved, self.moved = self.moved, set()
        there = [name for name in moved if name in self.frontiers]
        for name in sorted(there, key=self.places.__getitem__):
            reached = self.reached(name)
            if reached > self.promised.get(name, BEGINNING):
                self.promised[name] = reached
                self.entrance.advance(reached, name)

    def reached(self, name: str) -> int:
        """How far all channels of a replica have come."""
        channels = self.frontiers[name]
        return min(channels.values()) if len(channels) >= self.admission.channels else BEGINNING

    def present(self, name: str) -> bool:
        """Whether a replica may speak: it is attached, or is now because it had never been."""
        if self._admits(name):
            self.await_replica(name)
            return True
        return False

    def admit(
        self,
        name: str,
        channel: str,
        kind: NDArray[np.int8],
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        old_end: NDArray[np.int64],
    ) -> NDArray[np.int8]:
        """The rule that each element of a channel breaks by its times, or VALID; the channel moves on."""
        rules = np.full(len(kind), VALID, np.int8)
        reached = self.frontiers[name].get(channel, BEGINNING)
        self.reach(name, channel, check_times(kind, start, end, old_end, reached, rules))
        if self.admission.disorder is not None:
            self._infer(name, channel, int(latest_of(kind, start, old_end, self.admission.of_changes, rules)))
        return rules

    def _infer(self, name: str, channel: str, latest: int) -> None:
        """Note until when a channel is stable by the bound on its disorder, after its latest event.

        Rows that are refused promise nothing, nor do those of a snapshot: it takes long to read, and the log
        after it goes on from where it began.
        """
        bound = self.admission.disorder
        if bound is not None and latest >= BEGINNING + bound and latest > BEGINNING:
            known = self.inferred.get((name, channel), BEGINNING)
            self.inferred[name, channel] = max(latest - bound, known)

    def _elements(self, batch: Batch, name: str, channel: str, look: "Look | None" = None) -> None:
        if not len(batch):
            return
        if name not in self.frontiers and not self.present(name):
            self.entrance.refuse(_detached(batch, name))
            return
        self._received(name)
        if self.admission.of_changes:
            self.speaks(name, channel)
        look = look or self.look(batch, name, channel)
        self.reach(name, channel, look.stable)
        self._infer(name, channel, look.latest)
        if look.invalid:
            for one in self.refused(batch, look):
                self.entrance.refuse(one._replace(name=name or None))
            batch = batch.take(look.rules == VALID)
        if look.events > look.invalid:
            self.entrance.push(batch, name)

    def _control(self, batch: Batch, name: str) -> None:
        attaches = batch.kind[0] == Kind.ATTACH
        refused = self.refused_control(batch, name, attaches=bool(attaches))
        if refused is not None:
            self.entrance.refuse(refused)
        elif attaches:
            guarantee = int(batch.start[0])
            self.attach(name, None if guarantee == BEGINNING else guarantee)
        else:
            self.detach(name)

    def refused_control(self, batch: Batch, name: str, *, attaches: bool) -> Refused | None:
        """An attach of a replica that is attached, or a detach of one that is not: it stays away."""
        if attaches and self.is_attached(name):
            return _attached_twice(batch, name, self.reached(name))
        if attaches or self.is_attached(name) or (name in self.expected and name in self.admission.awaited):
            return None
        self.detach(name)
        return _detached(batch, name)

    def saved(self) -> State:
        """All of the state; nothing is inferred between passes."""
        values = {
            "frontiers": self.frontiers,
            "promised": self.promised,
            "left": sorted(self.left),
            "expected": sorted(self.expected),
        }
        return State(VERSION, values, [])

    def resume(self, state: State) -> None:
        """Go on from what was saved."""
        self.frontiers = {name: dict(known) for name, known in state.values["frontiers"].items()}
        self.places = {name: place for place, name in enumerate(self.frontiers)}
        self.attaches = len(self.places)
        self.promised, self.left = dict(state.values["promised"]), set(state.values["left"])
        self.expected = set(state.values.get("expected", ()))


def _detached(batch: Batch, name: str) -> Refused:
    """What a replica sent that is not attached."""
    return Refused(Rule.DETACHED_INPUT, batch, np.full(len(batch), BEGINNING), name=name or None)


def _attached_twice(batch: Batch, name: str, reached: int) -> Refused:
    return Refused(Rule.ALREADY_ATTACHED, batch, np.full(len(batch), reached), name=name or None)


@compiled
def look_at(
    kind: Any, start: Any, end: Any, old_end: Any, stable: int, of_changes: bool, rules: Any
) -> tuple[int, int, int, int, int]:
    """Write the rule that each element breaks by its times to ``rules``.

    Returns the stable after them, how many are events, break a rule, and are attaches or detaches, and the
    latest start (`latest_of`).
    """
    events = invalid = controls = 0
    rules[:] = VALID
    stable = check_times(kind, start, end, old_end, stable, rules)
    for i in range(len(kind)):
        events += kind[i] < STABLE
        if kind[i] > STABLE:
            rules[i] = VALID
            controls += 1
        invalid += rules[i] != VALID
    return stable, events, invalid, controls, latest_of(kind, start, old_end, of_changes, rules)


@compiled
def latest_of(kind: Any, start: Any, old_end: Any, of_changes: bool, rules: Any) -> int:
    """The greatest start of valid events; of changes, of those that are no rows of a snapshot."""
    latest = BEGINNING
    for i in range(len(kind)):
        counts = kind[i] < STABLE and rules[i] == VALID and not (of_changes and old_end[i] == _SNAPSHOT)
        if counts and start[i] > latest:
            latest = start[i]
    return latest


def refused(
    batch: Batch, rules: NDArray[np.int8], reached: int, *, of_changes: bool = False
) -> Iterable[Refused]:
    """Rows that break rules by their times, by the rule, with the stable that each met."""
    stables = np.where(batch.kind == Kind.STABLE, batch.start, BEGINNING)
    met = np.maximum(np.maximum.accumulate(stables), reached)
    for code in np.unique(rules[rules != VALID]).tolist():
        rows = rules == code
        rule = BROKEN[code]
        if of_changes and rule is Rule.INSERT_BEHIND_STABLE:
            rule = Rule.CHANGE_BEHIND_STABLE
        yield Refused(rule, batch.take(rows), met[rows])


def channels_of(batch: Batch) -> Sequence[tuple[str, Batch]]:
    """What each channel says, in the order of their first elements."""
    origin = batch.origin
    if origin is None or origin.channel is None:
        return [(origin.channels[0] if origin is not None else "", batch)]
    codes, first = np.unique(origin.channel, return_index=True)
    return [
        (origin.channels[code], batch.take(origin.channel == code))
        for code in codes[np.argsort(first)].tolist()
    ]
