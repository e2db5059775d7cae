"""Logical merge in any order and with revisions, by scans (LM IV-D, IV-E, V, corrected), under every policy.

R3 is R4 where payload and start are a key. While a complete input has joined, the furthest of them decides at
its stables what is there and what is not. While none has, lossy inputs decide by what they have shown alone
(`evidence`), and the stable follows their slowest, or their fastest.

Policies differ in what they do at an insert or an adjust; at a stable all do the same: make the output agree
with who decides, as far as the stable makes it final. `FinalOnly` says here what `HalfFrozen` says; cleansing
its output (`cleanse`) leaves what is final.
"""

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any

from anabranch.model.elements import Adjust, Element, Insert, Payload, Stable
from anabranch.model.output_policy import (
    EveryChange,
    FirstThenFinal,
    FollowLeader,
    Lead,
    OutputPolicy,
    Pace,
    Quorum,
)
from anabranch.model.properties import Case
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.oracle.evidence import Ledger, chosen, events
from anabranch.oracle.merge import Merge
from anabranch.oracle.payload import payload_key
from anabranch.oracle.removal import Removals


@dataclass
class Node:
    """All that is known of one payload and start."""

    payload: Payload
    start: int
    ledgers: dict[str, Ledger] = field(default_factory=dict)
    """What each input has said, those that have left included."""
    given: Counter[int] = field(default_factory=Counter)
    """The ends that the output has now."""

    def shown(self, name: str) -> Counter[int]:
        """The ends that an input shows now."""
        return self.ledgers[name].showing() if name in self.ledgers else Counter()


class IndexedMerge(Merge):
    """R3 and R4."""

    def __init__(
        self,
        case: Case,
        order: Callable[[Payload], Any] = lambda payload: str(dict(payload)),
        policy: OutputPolicy | None = None,
        pace: Pace = Pace.SLOWEST,
    ) -> None:
        """``order`` is how events of one start are ordered where a stable corrects several."""
        super().__init__(policy)
        assert case in (Case.R3, Case.R4)
        self.case = case
        self.order = order
        self.pace = pace
        self.nodes: dict[tuple[int, Hashable], Node] = {}
        self.late: Counter[str] = Counter()
        self.names: set[str] = set()
        self.removals = Removals(keyed=case is Case.R3)

    def attach(self, name: str, guarantee: int = BEGINNING, *, complete: bool = True) -> list[Element]:
        """An input joins under a name that none has had."""
        assert name not in self.names, f"{name} was attached before: what comes back is another input"
        self.names.add(name)
        return super().attach(name, guarantee, complete=complete)

    def _take(self, name: str, element: Element) -> None:
        match element:
            case Stable(time=time):
                self.sides[name].stable = max(self.sides[name].stable, time)
                self._recheck()
            case Insert(payload, start, end):
                self._hear(name, payload, start, None, end)
            case Adjust(payload, start, old_end, end):
                self._hear(name, payload, start, old_end, end)

    def _hear(self, name: str, payload: Payload, start: int, old_end: int | None, end: int) -> None:
        complete = self.sides[name].complete
        if old_end is None and start >= self.stable:
            self.sides[name].latest = max(self.sides[name].latest, start)
        key = _key(payload, start)
        node = self.nodes.get(key)
        if node is None:
            if start < self.stable:
                self.late[name] += not complete
                if complete and (old_end is None or key in self.removals.own):
                    self.removals.decided(key, None)
                    self.removals.hear(name, key, old_end, end, complete=complete)
                return
            if complete and old_end is not None:
                return
            node = self.nodes[key] = Node(payload, start)
        self.removals.hear(name, key, old_end, end, complete=complete)
        before = node.shown(name).total()
        if self.case is Case.R3:
            node.ledgers[name] = Ledger()
            if end > start:
                node.ledgers[name].insert(end)
        elif old_end is None:
            node.ledgers.setdefault(name, Ledger()).insert(end)
        else:
            node.ledgers.setdefault(name, Ledger()).adjust(start, old_end, end, complete=complete)
        self._react(name, node, before, old_end, end)

    def _react(self, name: str, node: Node, before: int, old_end: int | None, end: int) -> None:
        """What the policy lets out at an insert or an adjust."""
        open_still = node.start >= self.stable
        more = open_still and end > node.start and node.shown(name).total() > node.given.total()
        match self.policy:
            case FirstThenFinal():
                if more and node.shown(name).total() > before:
                    self._give(node, end)
            case EveryChange():
                self._follow(node, open_still, more, old_end, end)
            case FollowLeader(by=by):
                if name == self._leader(Lead(by)):
                    self._follow(node, open_still, more, old_end, end)
            case Quorum(fraction=fraction):
                votes = sum(node.shown(side).total() > node.given.total() for side in self.sides)
                if more and votes >= max(1, ceil(Fraction(str(fraction)) * len(self.sides))):
                    self._give(node, end)

    def _follow(self, node: Node, open_still: bool, more: bool, old_end: int | None, end: int) -> None:
        """Let the output change as an input did, where the output's stable allows it."""
        if self.case is Case.R3 and node.given:
            (old_end,) = node.given
        if old_end is not None and node.given[old_end]:
            if end != old_end and (open_still or (old_end >= self.stable and end >= self.stable)):
                self._adjust(node, old_end, end)
        elif more:
            self._give(node, end)

    def _leader(self, by: Lead = Lead.STABLE) -> str:
        """The furthest of those who decide; of equals the one that was attached first.

        Who joins, leaves or is idle changes it at once; an input that comes back begins anew.
        """

        def rank(name: str) -> tuple[bool, bool, int]:
            side = self.sides[name]
            return side.joined and side.complete, side.joined, self._how_far(name, by)

        return max(self.sides, key=rank)

    def _how_far(self, name: str, by: Lead) -> int:
        match by:
            case Lead.STABLE:
                return self.sides[name].stable
            case Lead.LATEST:
                return self.sides[name].latest
            case Lead.UNFROZEN:
                unfrozen = [node for node in self.nodes.values() if node.start >= self.stable]
                return sum(node.shown(name).total() for node in unfrozen)

    def _forget(self, name: str) -> None:
        """What has left is evidence still, and votes no more."""

    def _recheck(self) -> None:
        while True:
            for side in self.sides.values():
                if side.complete:
                    side.joined = side.joined or self.stable >= side.guarantee
                else:
                    side.joined = side.joined or (not side.idle and side.stable >= self.stable)
            time = self._next_stable()
            if time <= self.stable:
                return
            self._advance(time)

    def _next_stable(self) -> int:
        """The stable that the inputs allow; not beyond the present one where they allow none."""
        complete = [side.stable for side in self.sides.values() if side.joined and side.complete]
        if complete:
            return max(complete)
        lossy = [side.stable for side in self.sides.values() if side.joined]
        return (min if self.pace is Pace.SLOWEST else max)(lossy, default=BEGINNING)

    def _advance(self, time: int) -> None:
        leader = self._leader() if any(s.complete and s.joined for s in self.sides.values()) else None
        due = [(key, node) for key, node in self.nodes.items() if node.start < time]
        for key, node in sorted(due, key=lambda row: (row[1].start, self.order(row[1].payload))):
            self._settle(node, time, leader)
            if leader is not None and node.start >= self.stable:
                self.removals.decided(key, leader)
            if time == FOREVER or all(end < time for end in node.given):
                del self.nodes[key]
        self.stable = time
        self.out.append(Stable(time))

    def _settle(self, node: Node, time: int, leader: str | None) -> None:
        """Make the output agree with who decides as far as this stable makes it final."""
        given = _at_or_after(self.stable, node.given) if node.start < self.stable else node.given
        wanted = (
            self._by_evidence(node, given, time)
            if leader is None
            else self._by_leader(node, given, time, leader)
        )
        surplus, deficit = _sorted(given - wanted), _sorted(wanted - given)
        while len(surplus) > len(deficit):
            self._adjust(node, surplus.pop(0), node.start)
        while len(deficit) > len(surplus):
            self._give(node, deficit.pop(0))
        for old_end, end in _pairs(surplus, deficit, time):
            self._adjust(node, old_end, end)

    def _by_evidence(self, node: Node, given: Counter[int], time: int) -> Counter[int]:
        """What nobody complete decides; the events of a half-frozen node exist, only their ends are open."""
        everyone = list(node.ledgers.values())
        present = [ledger for name, ledger in node.ledgers.items() if name in self.sides]
        done = [
            node.ledgers[name]
            for name, side in self.sides.items()
            if name in node.ledgers and side.stable >= time
        ]
        if node.start < self.stable:
            return chosen(given.total(), everyone, present, done, given, self.stable, time)
        return chosen(events(everyone), everyone, present, done, given, node.start, time)

    def _by_leader(self, node: Node, given: Counter[int], time: int, leader: str) -> Counter[int]:
        """What the leader shows; of a half-frozen node, filled up or cut to what is there: its events exist.

        Where the leader has a gap, ends that stay open stay as they are; of those that would freeze now, the
        attached input with the greatest stable decides, and the output itself where none knows more.
        """
        wanted = node.shown(leader)
        if node.start >= self.stable:
            return wanted
        wanted = _at_or_after(self.stable, wanted)
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
            known = _sorted(_at_or_after(self.stable, node.shown(name)))
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


def _at_or_after(time: int, ends: Counter[int]) -> Counter[int]:
    return Counter({end: n for end, n in ends.items() if end >= time})


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
