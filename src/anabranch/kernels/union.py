"""All events of several inputs as one stream, at once and in the order in which they come.

The relation of the output is the sum of those of the inputs: an event that two of them show is there twice,
and an adjust from one of them changes one of the two. The promise is the least of those of the inputs, so
whatever is valid against that of its own input is valid in the output.

Memory: one number per input. Cost: none per row.
"""

from collections.abc import Iterable
from typing import ClassVar

from anabranch.kernels.kernel import Report, Result, State
from anabranch.kernels.store.saved import version_of
from anabranch.model.batch import Batch, Kind
from anabranch.model.time import BEGINNING

VERSION = 1


class Union:
    """State: the promise of each input.

    >>> union = Union(["east", "west"])
    >>> len(union.advance("east", 7).events), union.frontier
    (0, -9223372036854775808)
    >>> len(union.advance("west", 5).events), union.frontier
    (0, 5)
    """

    held: ClassVar[bool] = False

    def __init__(self, inputs: Iterable[str]) -> None:
        self.frontiers = dict.fromkeys(inputs, BEGINNING)
        assert self.frontiers, "a union has inputs"

    @property
    def frontier(self) -> int:
        """The least that the inputs have promised."""
        return min(self.frontiers.values())

    def push(self, name: str, batch: Batch) -> Result:
        """The events as they are, without the stables among them."""
        assert name in self.frontiers, f"the inputs are {', '.join(self.frontiers)}, not {name}"
        stables = batch.kind > Kind.ADJUST
        return Result(batch.take(~stables) if stables.any() else batch)

    def advance(self, name: str, time: int) -> Result:
        """No events; the promise may rise."""
        self.frontiers[name] = max(self.frontiers[name], time)
        return Result(Batch.of([]))

    def report(self) -> Report:
        """Nothing is held."""
        return Report(0, 0)

    def saved(self) -> State:
        """The promises of the inputs."""
        return State(VERSION, {"frontiers": dict(self.frontiers)}, [])

    @classmethod
    def load(cls, state: State) -> "Union":
        """The kernel that was saved."""
        state = version_of(state, VERSION, "a union")
        union = cls(state.values["frontiers"])
        union.frontiers.update(state.values["frontiers"])
        return union
