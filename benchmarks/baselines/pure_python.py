"""Case R3 in plain Python, one element tuple at a time (LM IV-D, corrected, for complete inputs).

The top tier is a sorted dict of starts, each with a dict of its payloads; a node holds the end that each
input shows and the end in the output. A stable visits only what it may change: the nodes that it makes half
frozen, those whose end in the output it passes, and those that its input would shorten, the last two from
heaps whose stale entries are dropped when they come up.

Elements are tuples, in and out, with the payload as a tuple::

    ("+", payload, start, end)    ("~", payload, start, old_end, end)    ("|", time)
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from itertools import count
from typing import Any

from sortedcontainers import SortedDict

from anabranch.model.batch import Batch, Kind
from anabranch.model.time import BEGINNING, FOREVER

Element = tuple[Any, ...]


class Node:
    """All that is known of one payload and start."""

    __slots__ = ("given", "half_frozen", "payload", "shown", "start")

    def __init__(self, payload: tuple[Any, ...], start: int, end: int) -> None:
        self.payload = payload
        self.start = start
        self.given: int | None = end
        """The end in the output; None once the node is forgotten."""
        self.shown: dict[int, int] = {}
        self.half_frozen = False


class PurePython:
    """R3 of complete inputs with the policy first-then-final.

    ``order`` says how payloads of one start are ordered where a stable corrects several.
    """

    def __init__(self, order: Callable[[tuple[Any, ...]], Any] = lambda payload: payload) -> None:
        self.order = order
        self.stable = BEGINNING
        self.starts: SortedDict = SortedDict()
        self.reached: dict[int, int] = {}
        self.open: list[tuple[int, int, Node]] = []
        """The half-frozen nodes by their end in the output."""
        self.shorter: dict[int, list[tuple[int, int, Node]]] = defaultdict(list)
        """For each input, by the end it shows, the half-frozen nodes it would shorten."""
        self.tickets = count()

    def push(self, i: int, elements: Iterable[Element]) -> list[Element]:
        """What comes out when input number i says elements."""
        out: list[Element] = []
        for element in elements:
            kind = element[0]
            if kind == "+":
                _, payload, start, end = element
                node = self._find(payload, start)
                if node is None:
                    if start < self.stable:
                        continue
                    node = Node(payload, start, end)
                    self.starts.setdefault(start, {})[payload] = node
                    out.append(element)
                self._show(node, i, end)
            elif kind == "~":
                _, payload, start, _, end = element
                node = self._find(payload, start)
                if node is not None:
                    self._show(node, i, end)
            else:
                self.reached[i] = max(self.reached.get(i, BEGINNING), element[1])
                if element[1] > self.stable:
                    self._advance(element[1], i, out)
        return out

    def _find(self, payload: tuple[Any, ...], start: int) -> Node | None:
        payloads = self.starts.get(start)
        return None if payloads is None else payloads.get(payload)

    def _show(self, node: Node, i: int, end: int) -> None:
        if end == node.start:
            node.shown.pop(i, None)
            return
        node.shown[i] = end
        if node.half_frozen and self.stable <= end < node.given:
            heappush(self.shorter[i], (end, next(self.tickets), node))

    def _advance(self, time: int, i: int, out: list[Element]) -> None:
        """Make the output agree with the input that leads as far as this stable makes it final."""
        changing = []
        for node in self._candidates(time, i):
            wanted = self._wanted(node, time, i)
            if wanted != node.given:
                changing.append((node, wanted))
            elif node.given < time or time == FOREVER:
                self._forget(node)
            elif not node.half_frozen:
                self._keep_open(node, time)
        changing.sort(key=lambda change: (change[0].start, self.order(change[0].payload)))
        for node, end in changing:
            out.append(("~", node.payload, node.start, node.given, node.start if end is None else end))
            if end is None or end < time or time == FOREVER:
                self._forget(node)
            else:
                node.given = end
                self._keep_open(node, time)
        self.stable = time
        out.append(("|", time))

    def _candidates(self, time: int, i: int) -> set[Node]:
        """What a stable of this input may change or make final."""
        found = set()
        for start in self.starts.irange(self.stable, time, inclusive=(True, False)):
            found.update(self.starts[start].values())
        while self.open and (self.open[0][0] < time or time == FOREVER):
            end, _, node = heappop(self.open)
            if node.given == end:
                found.add(node)
        shorter = self.shorter[i]
        while shorter and shorter[0][0] < time:
            end, _, node = heappop(shorter)
            if node.given is not None and node.shown.get(i) == end:
                found.add(node)
        return found

    def _wanted(self, node: Node, time: int, i: int) -> int | None:
        """The end that a node has after a stable of this input, or None."""
        end, given = node.shown.get(i), node.given
        if node.half_frozen and (end is None or end < self.stable):
            return given if given >= time else self._best_guess(node)
        if end is not None and end >= time and given >= time:
            return given
        return end

    def _best_guess(self, node: Node) -> int:
        """The end that the furthest input shows of a half-frozen node in which the leader has a gap."""
        known = [i for i, end in node.shown.items() if end >= self.stable]
        return (
            node.shown[max(known, key=lambda i: (self.reached.get(i, BEGINNING), -i))]
            if known
            else node.given
        )

    def _keep_open(self, node: Node, time: int) -> None:
        node.half_frozen = True
        heappush(self.open, (node.given, next(self.tickets), node))
        for i, end in node.shown.items():
            if time <= end < node.given:
                heappush(self.shorter[i], (end, next(self.tickets), node))

    def _forget(self, node: Node) -> None:
        payloads = self.starts[node.start]
        del payloads[node.payload]
        if not payloads:
            del self.starts[node.start]
        node.given = None


def tuples(batch: Batch) -> list[Element]:
    """A batch as element tuples."""
    columns = [column.to_pylist() for column in batch.payload.columns]
    payloads = zip(*columns, strict=True) if columns else [()] * len(batch)
    times = zip(
        batch.kind.tolist(), batch.start.tolist(), batch.old_end.tolist(), batch.end.tolist(), strict=True
    )
    elements: list[Element] = []
    for (kind, start, old_end, end), payload in zip(times, payloads, strict=True):
        match kind:
            case Kind.INSERT:
                elements.append(("+", payload, start, end))
            case Kind.ADJUST:
                elements.append(("~", payload, start, old_end, end))
            case _:
                elements.append(("|", start))
    return elements
