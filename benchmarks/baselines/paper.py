"""Case R3 in plain Python as LM IV-D lists it, with its mistakes corrected and nothing else.

The top tier is a `SortedDict` by start and payload, a node a dict of the end each input shows and the end in
the output. As in the listing, every stable goes through all nodes that start before it, half-frozen ones each
time again. Elements are tuples as in `pure_python`.
"""

from collections.abc import Iterable
from typing import Any

from sortedcontainers import SortedDict

from anabranch.model.time import BEGINNING, FOREVER

OUTPUT = -1


class Paper:
    """R3 of complete inputs with the policy first-then-final."""

    def __init__(self) -> None:
        self.nodes: SortedDict = SortedDict()
        self.stable = BEGINNING

    def push(self, i: int, elements: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """What comes out when input number i says elements."""
        out: list[tuple[Any, ...]] = []
        for element in elements:
            match element:
                case ("|", time):
                    if time > self.stable:
                        self._advance(i, time, out)
                case ("+", payload, start, end):
                    node = self.nodes.get((start, payload))
                    if node is None:
                        if start < self.stable:
                            continue
                        node = self.nodes[start, payload] = {OUTPUT: end}
                        out.append(element)
                    node[i] = end
                case ("~", payload, start, _, end):
                    node = self.nodes.get((start, payload))
                    if node is not None:
                        node[i] = end
        return out

    def _advance(self, i: int, time: int, out: list[tuple[Any, ...]]) -> None:
        done = []
        for key in self.nodes.irange(maximum=(time,), inclusive=(True, False)):
            start, payload = key
            node = self.nodes[key]
            end, given = node.get(i, start), node[OUTPUT]
            if end != given and (end < time or given < time or end == start):
                out.append(("~", payload, start, given, end))
                node[OUTPUT] = end
            if end < time or time == FOREVER:
                done.append(key)
        for key in done:
            del self.nodes[key]
        self.stable = time
        out.append(("|", time))
