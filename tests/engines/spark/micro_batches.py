"""Random merges as micro-batches of a query: how they are drawn, run in several ways, and judged.

A case is drawn from its seed alone. Its scenario is one of `laws.trial`; here it is cut into
micro-batches, dealt out to channels, tasks and parcels, and heard by the shards of a merge.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any
from zlib import crc32

from engines.spark import driving
from engines.spark.driving import Answer, Query, Said, shuffled
from engines.spark.merges import Merging
from laws import merge as law
from laws.merge import Attachment
from laws.trial import ORDERED, Meaning, Trial
from laws.trial import Subject as Embedded
from pyspark.sql import Row

from anabranch import BEGINNING, FOREVER, Adjust, Attach, Detach, Insert, Pace, Raise, Stable, text
from anabranch.engines.spark import journal
from anabranch.engines.spark.transport import parcel
from anabranch.engines.spark.transport.packing import Packing
from anabranch.engines.spark.transport.parcel import Parcel
from anabranch.engines.spark.transport.shards import shard_ids
from anabranch.model.elements import Control, Element
from anabranch.model.output_policy import FinalOnly
from anabranch.oracle.payload import payload_key
from anabranch.oracle.relation import World

MOST_CUTS = 7


@dataclass(frozen=True)
class Drawn:
    """One random merge in micro-batches."""

    seed: int
    trial: Trial
    shards: int
    channels: int
    ordered: bool
    rows: int
    merging: Merging
    batches: list[list[list[Said]]]
    """Of each micro-batch, what each task is given."""
    surprises: bool
    """Lossy inputs that nobody announced: what they say may be late."""
    least: int
    steps: int
    chunk: int

    @classmethod
    def of(cls, seed: int) -> "Drawn":
        """The case of a seed."""
        trial, random = Trial.drawn(seed, plain=True), Random(~seed)
        scenario = trial.scenario
        channels = 1 if trial.case in ORDERED else random.choice((1, 1, 2))
        delays = channels > 1 and random.random() < 0.5
        ordered = random.random() < 0.6
        surprises = bool(scenario.lossy) and random.random() < 0.2
        names = tuple(dict.fromkeys(item.input for item in scenario.recording))
        announced = () if surprises or random.random() < 0.5 else names
        declared = not scenario.lossy and random.random() < 0.5
        merging = Merging(
            None if declared else trial.case,
            scenario.policy,
            trial.pace,
            properties=trial.case.value if declared else None,
            lossy=scenario.lossy,
            replicas=announced,
            channels=channels if delays or random.random() < 0.5 else None,
            on_invalid=Raise(),
            on_broken=Raise(),
        )
        recording = [(item.input, item.element) for item in scenario.recording]
        if surprises:
            recording = recording[len(names) :]
        recording = list(_of_those_who_came(recording))
        together = len(names) if scenario.lossy and not announced and not surprises else 0
        batches = list(_cut(_spoken(recording, channels, random), channels, together, random))
        if delays:
            _delay(batches, random)
        if not ordered and trial.case not in ORDERED and random.random() < 0.8:
            batches = [list(_disordered(batch, random)) for batch in batches]
        return cls(
            seed,
            trial,
            random.randint(1, 3),
            channels,
            ordered,
            random.choice((1, 4, 1000, 1000)),
            merging,
            [_tasks(batch, ordered, random) for batch in batches],
            surprises,
            random.choice((0, 0, 500, 1 << 30)),
            random.choice((1, 3, 64)),
            random.choice((64, 1 << 20)),
        )

    def parcels(self) -> list[list[Row]]:
        """Of each micro-batch, the rows of parcels that the tasks make of it."""
        layout = driving.ORDERED if self.ordered else driving.UNORDERED
        packing = Packing(layout, self.shards, self.rows, ordered=self.ordered)
        return [list(driving.parcels(tasks, packing, shard_ids(self.shards))) for tasks in self.batches]

    def said(self) -> list[list[Said]]:
        """What is said in each micro-batch, each channel in its order."""
        return [sorted((s for t in tasks for s in t), key=lambda s: s.sequence) for tasks in self.batches]


def _of_those_who_came(
    recording: list[tuple[str, Element | Control]],
) -> Iterator[tuple[str, Element | Control]]:
    """All but detaches of replicas that are not attached."""
    present: set[str] = set()
    for name, element in recording:
        if isinstance(element, Detach):
            if name not in present:
                continue
            present.discard(name)
        else:
            present.add(name)
        yield name, element


def _spoken(
    recording: list[tuple[str, Element | Control]], channels: int, random: Random
) -> Iterator[list[Said]]:
    """What each element is in the channels of its replica: an event is told by one, a stable by all."""
    next_one = random.choice((0, 1 << 50))
    for name, element in recording:
        match element:
            case Insert() | Adjust():
                numbers = [crc32(f"{element.payload}{element.start}".encode()) % channels]
            case Stable():
                numbers = list(range(channels))
            case _:
                numbers = [0]
        next_one += random.choice((1, 1, 3))
        yield [Said(name, element, str(number), next_one) for number in numbers]


def _cut(spoken: Iterator[list[Said]], channels: int, together: int, random: Random) -> Iterator[list[Said]]:
    """Micro-batches. Where a replica has several channels, it comes or goes between them."""
    chance = random.choice((0.0, 0.03, 0.1, 0.3))
    cuts = MOST_CUTS
    batch: list[Said] = []
    alone = False
    for number, rows in enumerate(spoken):
        apart = channels > 1 and isinstance(rows[0].element, Attach | Detach)
        cut = cuts > 0 and random.random() < chance
        if batch and number >= together and (cut or apart or alone):
            yield batch
            batch, cuts = [], cuts - 1
        alone = apart
        batch.extend(rows)
    yield batch


def _delay(batches: list[list[Said]], random: Random) -> None:
    """Let a channel be slower than the other, as long as its replica stays."""
    for batch, after in pairwise(batches):
        staying = {s.replica for s in batch} - {
            s.replica for s in batch + after if isinstance(s.element, Attach | Detach)
        }
        for name in sorted(staying):
            channel = random.choice("01")
            mine = [s for s in batch if (s.replica, s.channel) == (name, channel)]
            late = mine[random.randint(0, len(mine)) :] if random.random() < 0.4 else []
            for said in late:
                batch.remove(said)
            after[:0] = late


def _disordered(batch: list[Said], random: Random) -> Iterator[Said]:
    """A micro-batch whose events are read in any order, but not across an attach or a detach."""
    waiting: list[Said] = []
    for said in batch:
        if isinstance(said.element, Attach | Detach):
            yield from _in_any_order(waiting, random)
            waiting = []
            yield said
        else:
            waiting.append(said)
    yield from _in_any_order(waiting, random)


def _in_any_order(batch: list[Said], random: Random) -> list[Said]:
    """Where an event gets an end twice, adjusts find them in more than one order: those stay as they are."""
    events = [(said.replica, said.element) for said in batch if isinstance(said.element, Insert | Adjust)]
    ends = Counter((name, str(event.payload), event.start, event.end) for name, event in events)
    return shuffled(batch, random) if max(ends.values(), default=0) < 2 else batch


def _tasks(batch: list[Said], ordered: bool, random: Random) -> list[list[Said]]:
    """What each task is given: any rows where their order is known, else one part after the other."""
    count = random.randint(1, 3)
    if ordered and random.random() < 0.5:
        tasks: list[list[Said]] = [[] for _ in range(count)]
        for said in shuffled(batch, random):
            random.choice(tasks).append(said)
        return tasks
    bounds = sorted(random.randint(0, len(batch)) for _ in range(count - 1))
    return [batch[a:b] for a, b in zip([0, *bounds], [*bounds, len(batch)], strict=True)]


@dataclass
class Turn:
    """What a channel says in one round, with its places, and the range in which it spoke to any shard."""

    first: int
    last: int
    rows: list[tuple[int, Element | Control]] = field(default_factory=list)


class Listener:
    """What a shard must say, by the oracle: in rounds, first the events of all, then the stables."""

    def __init__(self, drawn: Drawn) -> None:
        self.drawn = drawn
        self.oracle = Meaning(drawn.trial)
        self.stable = self.agreed = BEGINNING
        self.known: set[str] = set()
        self.present: dict[str, dict[str, int]] = {}
        self.guarantees: dict[str, int] = {}
        self.promised: dict[str, int] = {}
        self.aside: dict[str, list[list[Element]]] = {}
        self.out: list[Element] = []
        for name in drawn.merging.replicas:
            self._attach(name, BEGINNING)

    @property
    def frontier(self) -> int:
        """Complete inputs lead once the frontier has reached their guarantee; the oracle knows of others."""
        return self.stable if self.drawn.merging.lossy else min(self.stable, self.agreed)

    def receive(self, parcels: list[Parcel]) -> list[Element]:
        """The elements that come of a micro-batch, without stables."""
        self.out = []
        channels = _turns(parcels)
        for name in sorted({name for name, _ in channels} - self.known):
            self._attach(name, BEGINNING)
        waiting: dict[tuple[str, str], int] = {}
        rounds = [
            [
                (*name, turns[number])
                for name, turns in sorted(channels.items(), key=_name)
                if number < len(turns)
            ]
            for number in range(max(map(len, channels.values()), default=0))
        ]
        self._set_aside(rounds)
        for spoken in rounds:
            for name, channel, turn in spoken:
                self._hear(name, channel, turn, waiting)
            self._promise()
        for name in self.aside:
            self._hear_what_waited(name)
        self._settle(waiting, list(self.present))
        self._promise()
        return self.out

    def _set_aside(self, rounds: list[list[tuple[str, str, "Turn"]]]) -> None:
        """Of each replica, between its attaches and detaches, what waits for the end that it corrects."""
        self.aside = {}
        if self.drawn.ordered or self.drawn.trial.case in ORDERED:
            return
        instants: dict[str, list[list[tuple[Turn, int]]]] = {}
        for name, _, turn in (one for spoken in rounds for one in spoken):
            mine = instants.setdefault(name, [[]])
            for n, (_, element) in enumerate(turn.rows):
                if isinstance(element, Attach | Detach):
                    mine.append([])
                elif not isinstance(element, Stable):
                    mine[-1].append((turn, n))
        gone: set[tuple[int, int]] = set()
        for name, parts in instants.items():
            self.aside[name] = []
            for n, part in enumerate(parts):
                late = self._late([turn.rows[row][1] for turn, row in part], None if n else name)
                self.aside[name].append([part[row][0].rows[part[row][1]][1] for row in late])
                gone |= {(id(part[row][0]), part[row][1]) for row in late}
        for _, _, turn in (one for spoken in rounds for one in spoken):
            turn.rows = [row for n, row in enumerate(turn.rows) if (id(turn), n) not in gone]

    def _late(self, elements: list[Any], name: str | None) -> list[int]:
        """Which of the events that a replica says wait, in the order in which they are heard."""
        late = []
        keys = [(payload_key(element.payload), element.start) for element in elements]
        for key in dict.fromkeys(keys):
            waiting = read = [n for n, other in enumerate(keys) if other == key]
            held, heard = self._shown(elements[read[0]], name), []
            if (trail := _trail({n: elements[n] for n in read}, held)) is not None:
                heard, waiting = trail, []
            while nexts := [n for n in waiting if self._can_be_heard(elements[n], held)]:
                element = elements[nexts[0]]
                held -= Counter([element.old_end] if isinstance(element, Adjust) else [])
                held += Counter([element.end] if element.end > element.start else [])
                heard.append(nexts[0])
                waiting = [n for n in waiting if n != nexts[0]]
            order = heard + waiting
            same = next((n for n, row in enumerate(read) if order[n] != row), len(read))
            late += [(n, row) for n, row in enumerate(order[same:])]
        return [row for _, row in sorted(late)]

    def _can_be_heard(self, element: Element, held: Counter[int]) -> bool:
        return not isinstance(element, Adjust) or held[element.old_end] > 0

    def _shown(self, element: Insert | Adjust, name: str | None) -> Counter[int]:
        """The ends that a replica shows of an event before the micro-batch."""
        node = self.oracle.merge.nodes.get((element.start, payload_key(element.payload)))
        known = self.oracle.names.get(name) if name is not None else None
        return Counter() if node is None or known is None else +node.shown(known)

    def _hear_what_waited(self, name: str) -> None:
        for element in self.aside[name].pop(0) if self.aside.get(name) else []:
            self._say(self.oracle.push(name, [element]))

    def _hear(self, name: str, channel: str, turn: Turn, waiting: dict[tuple[str, str], int]) -> None:
        """Let a channel speak; rows that this shard is not told stand between those that it is."""
        before = turn.first - 1
        for place, element in turn.rows:
            if isinstance(element, Attach | Detach):
                if place > before + 1:
                    self._know(name, channel)
                self._hear_what_waited(name)
                self._come_or_go(name, element, waiting)
                before = place
                continue
            self._know(name, channel)
            if not isinstance(element, Stable):
                self._say(self.oracle.push(name, [element]))
            elif self.drawn.ordered:
                self.present[name][channel] = max(element.time, self.present[name][channel])
            else:
                waiting[name, channel] = max(element.time, waiting.get((name, channel), BEGINNING))
        if turn.last > before:
            self._know(name, channel)

    def _know(self, name: str, channel: str) -> None:
        if name in self.present:
            self.present[name].setdefault(channel, BEGINNING)

    def _come_or_go(self, name: str, element: Attach | Detach, waiting: dict[tuple[str, str], int]) -> None:
        guarantee = element.guarantee if isinstance(element, Attach) else BEGINNING
        guarantee = BEGINNING if name in self.drawn.merging.lossy else guarantee
        silent = self.present.get(name) == {}
        if isinstance(element, Attach) and silent and guarantee == BEGINNING:
            return
        if name in self.present:
            self._settle(waiting, [name])
            self._promise()
            self._say(self.oracle.detach(name))
            del self.present[name]
        if isinstance(element, Attach):
            self._attach(name, guarantee)

    def _attach(self, name: str, guarantee: int) -> None:
        self.known.add(name)
        self._say(self.oracle.attach(name, guarantee))
        self.present[name], self.promised[name], self.guarantees[name] = {}, BEGINNING, guarantee

    def _settle(self, waiting: dict[tuple[str, str], int], names: list[str]) -> None:
        for name, channel in [key for key in waiting if key[0] in names]:
            reached = self.present[name]
            reached[channel] = max(waiting.pop((name, channel)), reached[channel])

    def _promise(self) -> None:
        for name, channels in self.present.items():
            reached = min(channels.values(), default=BEGINNING)
            if len(channels) >= (self.drawn.merging.channels or 1) and reached > self.promised[name]:
                self.promised[name] = reached
                self._say(self.oracle.push(name, [Stable(reached)]))
        for _ in self.present:  # as often as one may have to wait for another
            for name in self.present:
                if self.guarantees[name] <= self.agreed:
                    lagging = self.drawn.merging.policy.lagging(self.promised[name])
                    self.agreed = max(self.agreed, lagging)

    def _say(self, out: list[Element]) -> None:
        self.stable = max([self.stable, *(e.time for e in out if isinstance(e, Stable))])
        self.out += [element for element in out if not isinstance(element, Stable)]


def _trail(rows: dict[int, Any], held: Counter[int]) -> list[int] | None:
    """The order as read in which an event is there once at most, or else the first that a walk finds."""
    asked = {element.old_end for element in rows.values() if isinstance(element, Adjust)}
    begin = [end for end in held.elements() if end in asked] or [None]
    steps = {
        n: (getattr(element, "old_end", None), element.end if element.end > element.start else None)
        for n, element in rows.items()
    }
    unused = dict(steps)

    def walk(at: int | None) -> list[int]:
        trail: list[int] = []
        while nexts := [n for n, (old, _) in unused.items() if old == at]:
            end = unused.pop(nexts[0])[1]
            trail = [nexts[0], *walk(end), *trail]
        return trail

    for order in (list(rows), walk(begin[0])):
        follows = [steps[n][0] for n in order] == [begin[0], *(steps[n][1] for n in order)][: len(order)]
        if len(begin) == 1 and follows and len(order) == len(rows):
            return order
    return None


def _turns(parcels: list[Parcel]) -> dict[tuple[str, str], list[Turn]]:
    """What every channel says, in its order: a round for each range of places that no other overlaps."""
    channels: dict[tuple[str, str], list[Turn]] = {}
    for stretch in sorted(
        (v for one in parcels for v in one.stretches), key=lambda stretch: stretch.sequence
    ):
        turns = channels.setdefault((stretch.replica, stretch.channel), [])
        if turns and stretch.sequence <= turns[-1].last:
            turns[-1].last = max(stretch.last, turns[-1].last)
        else:
            turns.append(Turn(stretch.sequence, stretch.last))
    for one in parcels:
        batch = one.batch(slice(None))
        for row, code in enumerate(one.stretch.tolist()):
            stretch, element = one.stretches[code], batch.element(row)
            place = stretch.sequence + int(one.row[row])
            for turn in channels[stretch.replica, stretch.channel]:
                if turn.first <= place <= turn.last:
                    turn.rows.append((place, element))
    for turns in channels.values():
        for turn in turns:
            turn.rows.sort(key=_place)
    return channels


def _place(row: tuple[int, object]) -> int:
    return row[0]


def _name(item: tuple[tuple[str, str], object]) -> tuple[str, str]:
    return item[0]


class Inputs:
    """What has been said, attach by attach, as `laws.merge` judges by it."""

    def __init__(self, drawn: Drawn) -> None:
        self.everyone: list[Attachment] = []
        self.present: dict[str, tuple[Attachment, dict[str, int]]] = {}
        self.gone: set[str] = set()
        self.channels = drawn.channels

    def receive(self, batch: list[Said]) -> list[Attachment]:
        """Everyone there has been after a micro-batch."""
        for said in batch:
            match said.element:
                case Attach(guarantee):
                    self._attach(said.replica, guarantee)
                case Detach():
                    self.present.pop(said.replica, None)
                case element:
                    if said.replica not in self.present:
                        self._attach(said.replica, BEGINNING)
                    self._push(*self.present[said.replica], said.channel, element)
        return self.everyone

    def _attach(self, name: str, guarantee: int) -> None:
        attachment = Attachment(f"{name}{len(self.everyone)}", guarantee, [])
        self.everyone.append(attachment)
        self.present[name] = attachment, {}

    def _push(self, one: Attachment, reached: dict[str, int], channel: str, element: Element) -> None:
        if isinstance(element, Stable):
            reached[channel] = max(element.time, reached.get(channel, BEGINNING))
            if len(reached) == self.channels:
                one.said.append(Stable(min(reached.values())))
        else:
            one.said.append(element)


@dataclass
class Judge:
    """State: the output so far, as one stream."""

    drawn: Drawn
    world: World = field(default_factory=World)
    said: list[Element] = field(default_factory=list)

    def receive(
        self, answers: dict[int, Answer], frontiers: dict[int, int], inputs: list[Attachment]
    ) -> str | None:
        """What is wrong with the output of a micro-batch, after which the shards are at these frontiers."""
        scenario = self.drawn.trial.scenario
        for number, answer in answers.items():
            for element in answer.elements():
                self.said.append(element)
                if (broken := self.world.apply(element)) is not None:
                    return f"shard {number} says {element}, which breaks {broken}"
        if len(set(frontiers.values())) > 1 and not isinstance(scenario.policy, FinalOnly):
            return f"the shards are at frontiers {frontiers}"
        stable = min(frontiers.values())
        if stable > self.world.stable:
            self.said.append(Stable(stable))
            self.world.apply(Stable(stable))
        if self.drawn.surprises or not inputs:
            return None
        if not law._stable_is_right(scenario, stable, inputs):
            return f"the output is stable to {stable}"
        if scenario.fault != "gap" and not scenario.lossy and self.drawn.seed % 4 == 0:
            found = law._incompatibility(self.said, inputs)
            return None if found is None else str(found)
        return None

    def end(self) -> str | None:
        """What is wrong with all of it; a gap leaves no one right relation, nor does what comes late."""
        trial = self.drawn.trial
        if self.world.stable != FOREVER:
            return "it does not end"
        law._is_not_chatty(trial.scenario, self.said)
        if trial.scenario.fault == "gap" or trial.pace is Pace.FASTEST or self.drawn.surprises:
            return None
        meant = Counter((payload_key(e.payload), e.start, e.end) for e in trial.scenario.events)
        if self.world.bag() != meant:
            return "the relation is not what was meant"
        if self.drawn.seed % 4 == 1:
            embedded = _embedded(trial)
            if (embedded.bag(), embedded.stable) != (self.world.bag(), self.world.stable):
                return "the relation is not that of the embedded engine"
        return None


def _embedded(trial: Trial) -> World:
    subject, world = Embedded(trial), World()
    present: set[str] = set()
    for item in trial.scenario.recording:
        match item.element:
            case Attach(guarantee):
                out = subject.attach(item.input, guarantee)
                present.add(item.input)
            case Detach():
                out = subject.detach(item.input) if item.input in present else []
                present.discard(item.input)
            case element:
                out = subject.push(item.input, [element])
                present.add(item.input)
        for element in out:
            assert world.apply(element) is None
    return world


def fault_of(drawn: Drawn) -> str | None:
    """What is wrong with a merge in micro-batches, or None."""
    batches = drawn.parcels()
    query, judge, inputs = Query(drawn.merging, drawn.shards), Judge(drawn), Inputs(drawn)
    frontiers = dict.fromkeys(range(drawn.shards), BEGINNING)
    listeners = [Listener(drawn) for _ in query.ids] if drawn.seed % 2 else []
    given: list[dict[int, Answer]] = []
    for number, (batch, rows) in enumerate(zip(drawn.said(), batches, strict=True)):
        answers = query.receive(rows)
        given.append(answers)
        frontiers |= {shard: answer.status.frontier for shard, answer in answers.items()}
        wrong = judge.receive(answers, frontiers, inputs.receive(batch))
        for shard, listener in enumerate(listeners):
            mine = [parcel.from_bytes(row.body) for row in rows if row.shard == query.ids[shard] and row.body]
            meant = listener.receive(mine)
            ours = answers[shard].elements() if shard in answers else []
            if ours != meant or frontiers[shard] != listener.frontier:
                wrong = wrong or f"shard {shard} says\n{text(ours)}\nand not\n{text(meant)}"
        if wrong:
            return f"micro-batch {number}: {wrong}"
    return judge.end() or _other_way(drawn, batches, given)


def _other_way(drawn: Drawn, batches: list[list[Row]], given: list[dict[int, Answer]]) -> str | None:
    """What differs where workers fail, repeat or have not heard everything; the rows of a group shuffled."""
    random = Random(drawn.seed)
    ways = random.choice((["restarted"], ["repeated"], ["stale"], ["repeated", "stale"]))
    ways = ways if len(batches) > 1 else ["shuffled"]
    usual = journal.LEAST, journal.STEPS, journal.CHUNK
    journal.LEAST, journal.STEPS, journal.CHUNK = drawn.least, drawn.steps, drawn.chunk
    try:
        query = Query(drawn.merging, drawn.shards)
        old = query.held()
        for number, (rows, before) in enumerate(zip(batches, given, strict=True)):
            kept = query.kept()
            answers = query.receive(shuffled(rows, random))
            if "repeated" in ways and random.random() < 0.5:
                query.keep(kept)
                answers = query.receive(shuffled(rows, random))
            if "stale" in ways and random.random() < 0.6:
                query.hold(old)
            elif "stale" in ways:
                old = query.held()
            if "restarted" in ways:
                query.restart()
            for shard, answer in before.items():
                if answers[shard].told() != answer.told():
                    return f"micro-batch {number}, {' and '.join(ways)}: shard {shard} says something else"
    finally:
        journal.LEAST, journal.STEPS, journal.CHUNK = usual
    return None


def failures(seeds: range) -> list[tuple[int, str]]:
    """The seeds that fail, with what is wrong."""
    found = []
    for seed in seeds:
        try:
            wrong = fault_of(Drawn.of(seed))
        except Exception as error:  # whatever it is, the seed tells
            wrong = f"{type(error).__name__}: {error}"
        if wrong is not None:
            found.append((seed, wrong))
    return found
