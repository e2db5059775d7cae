"""Where a source enters: the one door from rows of channels to the events of a flow.

What channels send is looked at, admitted and then promised. `Gate.look` says which rows would be refused and
changes nothing. `Gate.admit` lets the others in. `Gate.promise` ends a pass or a round of it: replicas are
stable until the least of what their channels are, and that is told where it is more than before. What a model
of progress (`models`) infers from events counts from there on, whatever is made of the events later.
Behind a gate every element is valid by its times.

A source that is not of replicas has one, which is called ``""`` and is never attached nor detached.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.kernel import Refused, State
from anabranch.kernels.store.saved import version_of
from anabranch.model.application import STABLE, VALID
from anabranch.model.attendance import Attendance, Change
from anabranch.model.batch import Batch, Kind
from anabranch.model.properties import Properties
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.model.validity import Rule
from anabranch.progress.admission import Admission
from anabranch.progress.channel_rows import ChannelRows, Stretch
from anabranch.progress.channels import Channels
from anabranch.progress.inspection import Look, looked_at
from anabranch.progress.inspection import refused as refused_of_channel
from anabranch.progress.models.model import Promises

VERSION = 3


class Entrance(Protocol):
    """What a gate opens to: the place of one source in a flow."""

    def push(self, batch: Batch, name: str) -> None:
        """Valid events, and stables where they stand among them."""
        ...

    def advance(self, time: int, name: str) -> None:
        """A replica is stable until a time."""
        ...

    def begins(self, name: str, time: int | None) -> None:
        """A replica of changes sends, here or to another shard, perhaps rows of a snapshot of a time."""
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
        """A replica is not waited for until it sends again."""
        ...

    def refuse(self, refused: Refused) -> None:
        """Rows are not used."""
        ...


class Gate:
    """State: who is attached, how far every channel has come, and what the flow was told of each replica."""

    def __init__(
        self,
        admission: Admission,
        entrance: Entrance,
        *,
        keeps_stables: bool = True,
        refuses_controls: bool = True,
    ) -> None:
        """A gate through which nothing has come.

        ``keeps_stables``: those of a replica with one channel are pushed where they stand among its events.
        ``refuses_controls``: of the gates of all shards, which all receive the same attaches, detaches and
        stables, this is the one that refuses what is wrong with them.
        """
        self.admission, self.entrance = admission, entrance
        self.keeps_stables, self.refuses_controls = keeps_stables, refuses_controls
        self.attendance = Attendance(admission.awaited)
        self.channels = Channels(admission.channels)
        self.model = admission.progress.model()
        self.promised: dict[str, int] = {}
        """What the flow has been told of each replica."""
        self.places: dict[str, int] = {}
        """The order in which replicas were attached, in which the flow is told of several."""
        self.attaches = 0
        self.inferred: list[Promises] = []
        """What the model promises after this pass."""
        self.waiting: dict[int, int] = {}
        """Of channels without an order, by number: the stables that count at the end of the pass."""
        self.seen: dict[int, int] = {}
        """Of the same the greatest start of their events in this pass."""
        self.snapshots: dict[str, int] = {}
        """Of each replica that has rows of a snapshot in this pass the least time of them."""

    def open(self) -> None:
        """Let those in that are awaited."""
        if not self.admission.replicas:
            self.attendance.send("")
            self.model.enter(self.channels.enter(""), "", None)
            self.promised[""], self.places[""] = BEGINNING, 0
        for name in self.admission.awaited:
            self.expect(name)

    @property
    def replicas(self) -> Collection[str]:
        """Those that are attached or expected, in the order in which they were."""
        return self.channels.numbers

    def stable(self, name: str) -> int:
        """How far all channels of an attached replica have come."""
        return self.channels.stable(name)

    def expect(self, name: str, channel: str | None = None) -> None:
        """A replica, perhaps with a channel, is waited for from now on; what comes of it is its beginning."""
        if self.attendance.expect(name) is Change.ENTERS:
            self._enter(name, None)
        if channel is not None:
            self._number(name, channel)

    def foresee(self, stretches: Iterable[Stretch]) -> None:
        """Know of the snapshots in all that is going to be admitted in a pass, before any of it is."""
        self.snapshots = {}
        for one in stretches:
            if one.snapshot is not None:
                least = self.snapshots.get(one.replica, FOREVER)
                self.snapshots[one.replica] = min(one.snapshot, least)

    def look(self, rows: ChannelRows) -> Look:
        """What the times of rows say; attaches, detaches and their consequences are judged by `refused`."""
        count = len(rows.stretches)
        before, ordered = np.empty(count, np.int64), np.empty(count, np.bool_)
        for n, one in enumerate(rows.stretches):
            before[n] = self._reached(one.replica, one.channel)
            ordered[n] = one.ordered
        return looked_at(rows.elements, rows.stretch, before, ordered, of_changes=self.admission.of_changes)

    def refused(self, rows: ChannelRows, look: Look) -> Iterator[Refused]:
        """What `admit` would refuse of rows that were looked at."""
        if look.controls or any(self.attendance.has_left(one.replica) for one in rows.stretches):
            yield from self._refused_with_controls(rows)
        elif look.invalid:
            yield from self._refused_by_times(rows, look)

    def admit(self, rows: ChannelRows, look: Look | None = None) -> None:
        """Let in what may come in, and refuse the rest; promises count from `promise` on."""
        look = look or self.look(rows)
        if look.controls:
            for part in rows.between_controls():
                if part.is_control():
                    self._control(part)
                else:
                    self.admit(part)
            self.observe(rows)
            return
        here = [self._enters(one) for one in rows.stretches]
        if not all(here):
            self._admit_some(rows, here)
            return
        numbers = np.empty(len(here), np.int64)
        for n, one in enumerate(rows.stretches):
            numbers[n] = self._number(one.replica, one.channel)
        self.channels.reach_all(numbers, look.reached)
        self._observe(rows.stretches, numbers, look)
        if look.invalid:
            for refused in self._refused_by_times(rows, look):
                self.entrance.refuse(refused)
        if look.events > look.invalid:
            self._push(rows, look)

    def observe(self, rows: ChannelRows) -> None:
        """Note what was seen of whole stretches, once the attaches and detaches among their rows are done."""
        known = tuple(
            one for one in rows.stretches if one.latest is not None and one.replica in self.promised
        )
        if known:
            numbers = [self._number(one.replica, one.channel) for one in known]
            nothing = self.look(ChannelRows(known, rows.elements[:0]))
            self._observe(known, np.array(numbers, np.int64), nothing)

    def attach(self, name: str, guarantee: int | None = None) -> Rule | None:
        """A replica joins; or the rule that its attach breaks."""
        guarantee = guarantee if self.admission.is_complete(name) and guarantee != BEGINNING else None
        change = self.attendance.attach(name, guarantee=guarantee is not None)
        match change:
            case Rule():
                return change
            case Change.BEGINS_ANEW:
                self._leave(name)
                self._enter(name, guarantee)
            case Change.ENTERS:
                self._enter(name, guarantee)
        return None

    def detach(self, name: str) -> Rule | None:
        """A replica leaves, and what it promised before counts; or the rule that its detach breaks."""
        change = self.attendance.detach(name)
        self._leave(name)
        return change if isinstance(change, Rule) else None

    def leave(self, name: str) -> None:
        """A replica leaves, whatever it is."""
        self.attendance.leave(name)
        self._leave(name)

    def idle(self, name: str) -> None:
        """A replica is not waited for until it sends again and has caught up."""
        self.attendance.idle.add(name)
        self.entrance.idle(name)

    def idle_but(self, names: Iterable[str], sending: Collection[str]) -> None:
        """Of some replicas those that are attached and do not send are not waited for."""
        for name in names:
            if name in self.promised and name not in sending and name not in self.attendance.idle:
                self.idle(name)

    def forget(self, name: str, channel: str) -> None:
        """A channel is at its end: its replica is stable until the least of what the others are."""
        self.promise()
        known = self.channels.numbers.get(name, {})
        if len(known) > 1 and channel in known:
            self._note(self.model.forget([known[channel]]))
            self.channels.forget(name, channel)
        self.promise()

    def settle(self) -> None:
        """Let count what channels without an order have shown, at the end of the pass."""
        (waiting, self.waiting), (seen, self.seen) = (self.waiting, {}), (self.seen, {})
        for number, time in waiting.items():
            self.channels.reach(number, time)
        if seen:
            numbers, latest = np.array(list(seen), np.int64), np.array(list(seen.values()), np.int64)
            self._note(self.model.observe(numbers, latest))

    def promise(self) -> None:
        """Tell the flow how far replicas have come, where that is further than before.

        Cost: the replicas that have moved, whatever their number.
        """
        inferred, self.inferred = self.inferred, []
        for one in inferred:
            self.channels.reach_all(*one)
        moved = self.channels.moves()
        for name in sorted(moved, key=self.places.__getitem__):
            stable = self.channels.stable(name)
            if stable > self.promised[name]:
                self.promised[name] = stable
                self.entrance.advance(stable, name)

    def saved(self) -> State:
        """All of the state between passes."""
        assert not self.inferred, "what is inferred counts when the pass ends"
        assert not self.waiting, "what channels without an order have shown counts when the pass ends"
        assert not self.seen, "what channels without an order have shown counts when the pass ends"
        values = {
            "channels": self.channels.saved(),
            "promised": self.promised,
            "presence": self.attendance.saved(),
            "model": self.model.saved(),
        }
        return State(VERSION, values, [])

    def resume(self, state: State) -> None:
        """Go on from what was saved."""
        values = version_of(state, VERSION, "the gate of a source").values
        self.channels = Channels.load(values["channels"], self.admission.channels)
        self.promised = dict(values["promised"])
        self.places = {name: place for place, name in enumerate(self.channels.numbers)}
        self.attaches = len(self.places)
        self.attendance.resume(values["presence"])
        self.model = self.admission.progress.resumed(values["model"])
        for replica, numbers in self.channels.numbers.items():
            self.model.enter(self.channels.whole[replica], replica, None)
            for channel, number in numbers.items():
                self.model.enter(number, replica, channel)

    def _reached(self, replica: str, channel: str) -> int:
        """How far a channel has come; a new one begins where its replica is, which has promised as much."""
        return max(self.channels.reached(replica, channel), self.promised.get(replica, BEGINNING))

    def _number(self, replica: str, channel: str) -> int:
        """The number of a channel, of which the model learns when it is new."""
        number = self.channels.numbers[replica].get(channel)
        if number is None:
            number = self.channels.number(replica, channel)
            self._note(self.model.enter(number, replica, channel))
        return number

    def _note(self, promises: Promises) -> None:
        """Let promises of the model count when the pass ends."""
        if len(promises.channels):
            self.inferred.append(promises)

    def _enter(self, name: str, guarantee: int | None) -> None:
        self._note(self.model.enter(self.channels.enter(name), name, None))
        self.attaches += 1
        self.promised[name], self.places[name] = BEGINNING, self.attaches
        complete = self.admission.is_complete(name)
        self.entrance.attach(name, guarantee, self.admission.promised, complete=complete)

    def _leave(self, name: str) -> None:
        if name not in self.promised:
            return
        for number in self.channels.numbers[name].values():
            if number in self.waiting:
                self.channels.reach(number, self.waiting.pop(number))
        self.promise()
        numbers = [*self.channels.numbers[name].values(), self.channels.whole[name]]
        promises = self.model.forget(numbers)
        self.channels.leave(name)
        self._note(promises)
        del self.promised[name], self.places[name]
        self.entrance.detach(name)

    def _enters(self, stretch: Stretch) -> bool:
        """Whether a replica may send, which it does; one that was not known is attached."""
        change = self.attendance.send(stretch.replica)
        if isinstance(change, Rule):
            return False
        if change is Change.ENTERS:
            self._enter(stretch.replica, None)
        if self.admission.of_changes and self.admission.replicas:
            self.entrance.begins(stretch.replica, self.snapshots.get(stretch.replica))
        return True

    def _admit_some(self, rows: ChannelRows, here: list[bool]) -> None:
        """Admit the stretches of replicas that may send; the rows of others are refused."""
        for one, may_send in zip(rows.each(), here, strict=True):
            if may_send:
                self.admit(one)
            elif len((refused := _detached(one, stables=self.refuses_controls)).batch):
                self.entrance.refuse(refused)

    def _observe(self, stretches: tuple[Stretch, ...], numbers: NDArray[np.int64], look: Look) -> None:
        """Note what follows from what was seen of stretches whose channels have these numbers."""
        latest = look.latest
        for n, one in enumerate(stretches):
            if one.latest is not None:
                latest[n] = one.latest
            if not one.ordered:
                number = int(numbers[n])
                self.waiting[number] = max(int(look.waiting[n]), self.waiting.get(number, BEGINNING))
                self.seen[number] = max(int(latest[n]), self.seen.get(number, BEGINNING))
                latest[n] = BEGINNING
        self._note(self.model.observe(numbers, latest))

    def _push(self, rows: ChannelRows, look: Look) -> None:
        elements, names = rows.elements, [one.replica for one in rows.stretches]
        valid = look.rules == VALID
        if not self._stand(rows.stretches):
            valid &= elements.kind < STABLE
        if rows.stretch is None or names.count(names[0]) == len(names):
            self.entrance.push(
                rows.batch() if valid.all() else elements.take(np.flatnonzero(valid)), names[0]
            )
            return
        codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
        used = np.flatnonzero(valid)
        whose = np.array([codes[name] for name in names])[rows.stretch[used]]
        order = np.argsort(whose, kind="stable")
        bounds = np.searchsorted(whose[order], np.arange(len(codes) + 1)).tolist()
        for name, code in codes.items():
            mine = used[order[bounds[code] : bounds[code + 1]]]
            if len(mine):
                self.entrance.push(elements.take(mine), name)

    def _stand(self, stretches: tuple[Stretch, ...]) -> bool:
        """Stables may be pushed where they stand: what a channel is stable until its replica is."""
        return self.keeps_stables and all(
            one.ordered and len(self.channels.numbers[one.replica]) == self.channels.needed == 1
            for one in stretches
        )

    def _refused_by_times(self, rows: ChannelRows, look: Look) -> Iterator[Refused]:
        bounds, of_changes = rows.bounds(), self.admission.of_changes
        for n, one in enumerate(rows.stretches):
            begin, end = bounds[n], bounds[n + 1]
            rules = look.rules[begin:end]
            if (rules != VALID).any():
                yield from refused_of_channel(
                    rows.elements[begin:end],
                    rules,
                    int(look.before[n]),
                    of_changes=of_changes,
                    name=one.replica or None,
                )

    def _control(self, rows: ChannelRows) -> None:
        """A replica attaches or detaches, as one row says."""
        name, batch = rows.stretches[0].replica, rows.batch()
        if not self.admission.replicas:
            rule: Rule | None = Rule.DETACHED_INPUT
        elif batch.kind[0] == Kind.ATTACH:
            known = self.stable(name) if name in self.promised else BEGINNING
            rule = self.attach(name, int(batch.start[0]))
        else:
            known, rule = BEGINNING, self.detach(name)
        if rule is not None and self.refuses_controls:
            known = known if rule is Rule.ALREADY_ATTACHED else BEGINNING
            self.entrance.refuse(Refused(rule, batch, np.array([known]), name=name or None))

    def _refused_with_controls(self, rows: ChannelRows) -> Iterator[Refused]:
        """What `admit` would refuse, found by letting others attach and detach in its place."""
        attendance, reached, anew = self.attendance.copy(), dict[tuple[str, str], int](), set[str]()
        for part in rows.between_controls():
            stretch = part.stretches[0]
            name, key = stretch.replica, (stretch.replica, stretch.channel)
            before = reached.get(key, BEGINNING if name in anew else self._reached(*key))
            if part.is_control():
                attaches = part.elements.kind[0] == Kind.ATTACH
                change = attendance.attach(name) if attaches else attendance.detach(name)
                if isinstance(change, Rule):
                    known = np.array([before if attaches else BEGINNING])
                    yield Refused(change, part.batch(), known, name=name or None)
                if not attaches or change is Change.ENTERS:
                    anew.add(name)
                    reached = {other: time for other, time in reached.items() if other[0] != name}
            elif isinstance(attendance.send(name), Rule):
                yield _detached(part)
            else:
                ordered, of_changes = np.array([stretch.ordered]), self.admission.of_changes
                look = looked_at(part.elements, None, np.array([before]), ordered, of_changes=of_changes)
                reached[key] = int(look.reached[0])
                yield from self._refused_by_times(part, look)


def _detached(rows: ChannelRows, *, stables: bool = True) -> Refused:
    """What a replica sent that is not attached; stables too, unless the gate of another shard has them."""
    batch, name = rows.batch(), rows.stretches[0].replica
    if not stables:
        batch = batch.take(batch.kind < STABLE)
    return Refused(Rule.DETACHED_INPUT, batch, np.full(len(batch), BEGINNING), name=name or None)
