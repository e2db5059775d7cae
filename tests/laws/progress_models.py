"""Models of progress, and what all of them obey: a gate promises what the meaning of its model says.

The meaning of a model is a function of all that was seen of every channel; it has no state. A channel is
stable until the most of what its own stables and that function have ever said, a replica until the least of
its channels, or until what the function says of the replica itself. A promise of a replica holds for channels
that it has later, too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, TypeAlias

from laws.gates import Noted

from anabranch import BEGINNING, Attach, Batch, Detach, Insert, Stable
from anabranch.oracle.progress import disorder, stated
from anabranch.progress.admission import Admission
from anabranch.progress.channel_rows import ChannelRows, Stretch
from anabranch.progress.gate import Gate
from anabranch.progress.models.disorder import Disorder
from anabranch.progress.models.model import Progress
from anabranch.progress.models.stated import Stated

Seen: TypeAlias = Mapping[tuple[str, str | None], list[int]]
"""Of every channel the starts of its valid events, in order; of every replica itself, under None, none."""
Meaning: TypeAlias = Callable[[Seen], Mapping[tuple[str, str | None], int]]
REPLICAS, CHANNELS = "ab", "xyz"


class Model(NamedTuple):
    """A model of progress: how it is drawn, with its meaning."""

    name: str
    draw: Callable[[Random], tuple[Progress, Meaning]]


def _disorder(random: Random) -> tuple[Progress, Meaning]:
    bound = random.randint(0, 5)
    return Disorder(bound), lambda seen: disorder(seen, bound)


MODELS = (Model("stated", lambda _: (Stated(), stated)), Model("disorder", _disorder))


@dataclass
class Meant:
    """What a gate promises, by what was sent to it and the meaning of its model."""

    meaning: Meaning
    seen: dict[tuple[str, str | None], list[int]] = field(default_factory=dict)
    reached: dict[tuple[str, str | None], int] = field(default_factory=dict)
    promised: dict[str, int] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)

    def send(self, replica: str, channel: str, element: object) -> None:
        """One element of a channel."""
        match element:
            case Attach():
                self._enter(replica)
            case Detach():
                if (replica, None) in self.seen:
                    self.end_pass()
                for key in [key for key in self.seen if key[0] == replica]:
                    del self.seen[key], self.reached[key]
                self.promised.pop(replica, None)
                self.left.add(replica)
            case _ if replica in self.left:
                pass
            case Stable(time):
                reached = self._known(replica, channel)
                self.reached[replica, channel] = max(time, reached)
            case Insert(start=start):
                if start >= max(self._known(replica, channel), self.reached[replica, None]):
                    self.seen[replica, channel].append(start)

    def end_pass(self) -> dict[str, int]:
        """How far each replica is after a pass."""
        for key, time in self.meaning(self.seen).items():
            self.reached[key] = max(time, self.reached[key])
        for replica in self.promised:
            self.promised[replica] = max(self.promised[replica], self._stable(replica))
        return self.promised

    def _stable(self, replica: str) -> int:
        own = [time for (name, channel), time in self.reached.items() if name == replica and channel]
        return max(self.reached[replica, None], min(own, default=BEGINNING))

    def _enter(self, replica: str) -> None:
        if (replica, None) not in self.seen:
            self.left.discard(replica)
            self.seen[replica, None], self.reached[replica, None] = [], BEGINNING
            self.promised[replica] = BEGINNING

    def _known(self, replica: str, channel: str) -> int:
        self._enter(replica)
        self.seen.setdefault((replica, channel), [])
        return self.reached.setdefault((replica, channel), self.promised[replica])


def check(seed: int, models: tuple[Model, ...] = MODELS) -> None:
    """A gate promises after every pass what is meant, and is the same after a restart."""
    random = Random(seed)
    progress, meaning = random.choice(models).draw(random)
    admission = Admission(replicas=True, awaited=tuple(random.choice(["", "a", "ab"])), progress=progress)
    gate, meant = Gate(admission, Noted()), Meant(meaning)
    gate.open()
    for name in admission.awaited:
        meant.send(name, "", Attach())
    now = 0
    for _ in range(random.randint(2, 12)):
        for _ in range(random.randint(1, 4)):
            now += random.randint(0, 3)
            replica, channel = random.choice(REPLICAS), random.choice(CHANNELS[: random.randint(1, 3)])
            elements = [_element(random, now) for _ in range(random.randint(1, 4))]
            gate.admit(ChannelRows((Stretch(replica, channel),), Batch.of(elements)))
            for one in elements:
                meant.send(replica, channel, one)
        gate.promise()
        assert gate.promised == meant.end_pass(), f"seed {seed}"
        if random.random() < 0.3:
            saved, gate = gate.saved(), Gate(admission, gate.entrance)
            gate.resume(saved)


def _element(random: Random, now: int) -> object:
    if random.random() < 0.08:
        return random.choice([Attach(), Detach()])
    if random.random() < 0.2:
        return Stable(now - random.randint(0, 9))
    start = now + random.randint(-6, 6)
    return Insert({"v": random.choice("xy")}, start, start + 3)
