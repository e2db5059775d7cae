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

from anabranch.model.elements import Adjust, Element, Insert, Stable
from anabranch.model.output_policy import FirstThenFinal, OutputPolicy
from anabranch.model.properties import Case
from anabranch.model.time import BEGINNING
from anabranch.oracle.payload import payload_key


@dataclass
class Side:
    """One attach of one input."""

    guarantee: int = BEGINNING
    complete: bool = True
    joined: bool = False
    idle: bool = False
    stable: int = BEGINNING
    latest: int = BEGINNING
    """The greatest start of its inserts, of those at or after the output's stable when they were said."""
    queue: list[Element] = field(default_factory=list)


class Merge:
    """What all cases share: inputs that come and go, and the output so far."""

    def __init__(self, policy: OutputPolicy | None = None) -> None:
        self.policy = policy or FirstThenFinal()
        self.sides: dict[str, Side] = {}
        self.stable = BEGINNING
        self.out: list[Element] = []

    def attach(self, name: str, guarantee: int = BEGINNING, *, complete: bool = True) -> list[Element]:
        """An input joins; if it is complete, it shows every event that ends at or after its guarantee."""
        assert name not in self.sides, f"{name} is attached"
        self.sides[name] = Side(guarantee, complete)
        return self._reaction(self._recheck)

    def detach(self, name: str) -> list[Element]:
        """An input leaves; what it alone supported stays until another input decides."""
        del self.sides[name]
        self._forget(name)
        return self._reaction(self._recheck)

    def force_join(self, name: str) -> list[Element]:
        """An input may lead before the output has reached its guarantee; what it does not show is lost."""
        self.sides[name].joined = True
        return self._reaction(self._recheck)

    def idle(self, name: str) -> list[Element]:
        """Nobody waits for an input until it speaks again and has caught up."""
        side = self.sides[name]
        if not side.complete:
            side.idle, side.joined = True, False
        return self._reaction(self._recheck)

    def push(self, name: str, element: Element) -> list[Element]:
        """What comes out when an input says an element."""
        said = len(self.out)
        if self.sides[name].idle:
            self.sides[name].idle = False
            self._recheck()
        if isinstance(element, Stable):
            element = Stable(self.policy.lagging(element.time))
        self._take(name, element)
        return self.out[said:]

    def _reaction(self, act: Callable[[], None]) -> list[Element]:
        said = len(self.out)
        act()
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

    def __init__(self, case: Case, policy: OutputPolicy | None = None) -> None:
        super().__init__(policy)
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
            side.joined = side.joined or max(self.latest, self.stable) >= side.guarantee
            if side.joined and side.queue:
                queue, side.queue = side.queue, []
                for element in queue:
                    self._take(name, element)
