"""Logical merge by scans: the algorithms of LM IV as corrected, one element at a time, in plain Python.

A merge takes elements of several inputs that mean the same stream and gives one stream that is valid,
compatible with the inputs after every element, and stable as far as the furthest input that has joined. Every
attach is an input of its own: what came back after a restart knows nothing of what it said before.

These say *which elements* come out. That the elements are right is judged by `relation`, `futures` and
`conditions`, which know nothing of merging.
"""

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from anabranch.model.elements import Adjust, Element, Insert, Payload, Stable
from anabranch.model.properties import Case
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.oracle.payload import payload_key


@dataclass
class Side:
    """One attach of one input."""

    guarantee: int
    joined: bool = False
    stable: int = BEGINNING
    queue: list[Element] = field(default_factory=list)


class Merge:
    """What all cases share: inputs that come and go, and the output so far."""

    def __init__(self) -> None:
        self.sides: dict[str, Side] = {}
        self.stable = BEGINNING
        self.out: list[Element] = []

    def attach(self, name: str, guarantee: int = BEGINNING) -> list[Element]:
        """An input joins; it shows every event that ends at or after its guarantee."""
        assert name not in self.sides, f"{name} is attached"
        self.sides[name] = Side(guarantee)
        return self._reaction(self._recheck)

    def detach(self, name: str) -> list[Element]:
        """An input leaves; what it alone supported stays until another input decides."""
        del self.sides[name]
        self._forget(name)
        return self._reaction(self._recheck)

    def push(self, name: str, element: Element) -> list[Element]:
        """What comes out when an input says an element."""
        return self._reaction(lambda: self._take(name, element))

    def _reaction(self, act: object) -> list[Element]:
        said = len(self.out)
        act()  # type: ignore[operator]
        return self.out[said:]

    def _take(self, name: str, element: Element) -> None:
        raise NotImplementedError

    def _forget(self, name: str) -> None:
        raise NotImplementedError

    def _recheck(self) -> None:
        raise NotImplementedError


class OrderedMerge(Merge):
    """R0, R1 and R2: inserts in order of start, so only the latest start matters (LM IV-A to IV-C).

    An input that has not joined is queued: from the moment the others reach its guarantee they may all fail.
    """

    def __init__(self, case: Case) -> None:
        super().__init__()
        assert case in (Case.R0, Case.R1, Case.R2)
        self.case = case
        self.latest = BEGINNING
        self.shown: dict[str, Counter[Hashable]] = {}
        self.given: Counter[Hashable] = Counter()

    def _take(self, name: str, element: Element) -> None:
        side = self.sides[name]
        match element:
            case Adjust():
                raise ValueError(f"{self.case.name} has no adjusts")
            case Insert(start=start) if not side.joined:
                if start >= side.guarantee:
                    side.queue.append(element)
            case Stable() if not side.joined:
                side.queue.append(element)
            case Insert(start=start):
                if start < self.latest or start < self.stable:
                    return
                if start > self.latest:
                    self.latest, self.shown, self.given = start, {}, Counter()
                self._put(name, element)
                self._recheck()
            case Stable(time=time):
                if time > self.stable:
                    self.stable = time
                    self.out.append(element)
                    self._recheck()

    def _put(self, name: str, element: Insert) -> None:
        key = self._tie(element)
        shown = self.shown.setdefault(name, Counter())
        shown[key] += 1
        if shown[key] > self.given[key] and not (self.case is Case.R0 and self.given[key]):
            self.given[key] = shown[key]
            self.out.append(element)

    def _tie(self, element: Insert) -> Hashable:
        """What tells elements of one start apart: nothing but their number, or payload and end."""
        return None if self.case is not Case.R2 else (payload_key(element.payload), element.end)

    def _forget(self, name: str) -> None:
        self.shown.pop(name, None)

    def _recheck(self) -> None:
        for name, side in list(self.sides.items()):
            if not side.joined and (self.latest >= side.guarantee or self.stable >= side.guarantee):
                side.joined = True
                queue, side.queue = side.queue, []
                for element in queue:
                    self._take(name, element)


@dataclass
class Node:
    """All that is known of one payload and start."""

    payload: Payload
    start: int
    shown: dict[str, Counter[int]] = field(default_factory=dict)
    """The ends that each input shows now."""
    given: Counter[int] = field(default_factory=Counter)
    """The ends that the output has now."""


class IndexedMerge(Merge):
    """R3 and R4: any order, with adjusts (LM IV-D, IV-E); R3 is R4 where payload and start are a key.

    The first copy of an event goes out at once; corrections wait until a stable would make them impossible.
    """

    def __init__(
        self, case: Case, order: Callable[[Payload], Any] = lambda payload: str(dict(payload))
    ) -> None:
        """``order`` is how events of one start are ordered where a stable corrects several."""
        super().__init__()
        assert case in (Case.R3, Case.R4)
        self.case = case
        self.order = order
        self.nodes: dict[tuple[int, Hashable], Node] = {}

    def _take(self, name: str, element: Element) -> None:
        match element:
            case Stable(time=time):
                self.sides[name].stable = max(self.sides[name].stable, time)
                self._recheck()
            case Insert(payload, start, end):
                self._insert(name, payload, start, end)
            case Adjust(payload, start, old_end, end):
                node = self.nodes.get(_key(payload, start))
                if node is not None:
                    shown = self._shown(node, name)
                    shown[old_end] -= 1
                    shown[end] += end > start
                    node.shown[name] = +shown

    def _insert(self, name: str, payload: Payload, start: int, end: int) -> None:
        node = self.nodes.get(_key(payload, start))
        if node is None:
            if start < self.stable:
                return
            node = self.nodes[_key(payload, start)] = Node(payload, start)
        shown = self._shown(node, name)
        shown[end] += 1
        node.shown[name] = +shown
        if start >= self.stable and shown.total() > node.given.total():
            node.given[end] += 1
            self.out.append(Insert(payload, start, end))

    def _shown(self, node: Node, name: str) -> Counter[int]:
        """What an input shows of a node; where payload and start are a key, a new end replaces the last."""
        return Counter() if self.case is Case.R3 else Counter(node.shown.get(name, Counter()))

    def _forget(self, name: str) -> None:
        for node in self.nodes.values():
            node.shown.pop(name, None)

    def _recheck(self) -> None:
        while True:
            for side in self.sides.values():
                side.joined = side.joined or self.stable >= side.guarantee
            ahead = {n: s.stable for n, s in self.sides.items() if s.joined and s.stable > self.stable}
            if not ahead:
                return
            leader = max(ahead, key=lambda name: ahead[name])
            self._advance(ahead[leader], leader)

    def _advance(self, time: int, leader: str) -> None:
        due = [(key, node) for key, node in self.nodes.items() if node.start < time]
        for key, node in sorted(due, key=lambda row: (row[1].start, self.order(row[1].payload))):
            self._settle(node, time, leader)
            if time == FOREVER or all(end < time for end in node.given):
                del self.nodes[key]
        self.stable = time
        self.out.append(Stable(time))

    def _settle(self, node: Node, time: int, leader: str) -> None:
        """Make the output agree with the leader as far as this stable makes it final."""
        half_frozen = node.start < self.stable
        wanted, given = node.shown.get(leader, Counter()), node.given
        if half_frozen:
            wanted = Counter({end: n for end, n in wanted.items() if end >= self.stable})
            given = Counter({end: n for end, n in given.items() if end >= self.stable})
            wanted = self._padded(wanted, given, node, time)
        surplus, deficit = _sorted(given - wanted), _sorted(wanted - given)
        while len(surplus) > len(deficit):
            self._adjust(node, surplus.pop(0), node.start)
        while len(deficit) > len(surplus):
            self._give(node, deficit.pop(0))
        for old_end, end in _pairs(surplus, deficit, time):
            self._adjust(node, old_end, end)

    def _padded(self, wanted: Counter[int], given: Counter[int], node: Node, time: int) -> Counter[int]:
        """What the leader shows of a half-frozen node, filled up or cut to what is there: its events exist.

        Where the leader has a gap, ends that stay open stay as they are; of those that would freeze now, the
        attached input with the greatest stable decides, and the output itself where none knows more.
        """
        missing = given.total() - wanted.total()
        if missing < 0:
            for end in reversed(_sorted(wanted - given)[missing:]):
                wanted[end] -= 1
            return +wanted
        spare = _sorted(given - wanted)
        for end in reversed(spare[len(spare) - missing :] if missing else []):
            wanted[end if end >= time else self._best_guess(node, end)] += 1
        return +wanted

    def _best_guess(self, node: Node, end: int) -> int:
        for name in sorted(self.sides, key=lambda name: -self.sides[name].stable):
            known = [e for e in _sorted(node.shown.get(name, Counter())) if e >= self.stable]
            if known:
                return known[0]
        return end

    def _adjust(self, node: Node, old_end: int, end: int) -> None:
        node.given[old_end] -= 1
        node.given[end] += end > node.start
        node.given = +node.given
        self.out.append(Adjust(node.payload, node.start, old_end, end))

    def _give(self, node: Node, end: int) -> None:
        node.given[end] += 1
        self.out.append(Insert(node.payload, node.start, end))


def _key(payload: Payload, start: int) -> tuple[int, Hashable]:
    return start, payload_key(payload)


def _sorted(ends: Counter[int]) -> list[int]:
    return sorted(ends.elements())


def _pairs(surplus: list[int], deficit: list[int], time: int) -> list[tuple[int, int]]:
    """Which end becomes which, so that no end before this time is left wrong; ends beyond it stay."""
    pairs = []
    surplus, deficit = list(surplus), list(deficit)
    while (surplus and surplus[0] < time) or (deficit and deficit[0] < time):
        if deficit[0] < time:
            late = surplus.pop(0) if surplus[0] < time else surplus.pop()
            pairs.append((late, deficit.pop(0)))
        else:
            pairs.append((surplus.pop(0), deficit.pop()))
    return pairs
