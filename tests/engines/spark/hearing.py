"""One shard that is given what channels say, with no Spark and no state store."""

from typing import Any

from engines.spark.driving import ORDERED, ROWS, UNORDERED, Said, record_batch
from engines.spark.merges import Merging, assignment_of

from anabranch import Insert
from anabranch.engines.spark.assignment import Assignment
from anabranch.engines.spark.rows_merge import ROWS_SOURCE
from anabranch.engines.spark.shard import Shard as OfALevel
from anabranch.engines.spark.transport.packing import Packing
from anabranch.engines.spark.transport.parcel import Parcel
from anabranch.kernels.merge.merge import Merge
from anabranch.model.elements import Control, Element
from anabranch.rows.reading import Place, read_rows


class Shard(OfALevel):
    """A shard of a merge of rows, which is a plan of one node."""

    def __init__(self, merging: Merging, number: int = 0, states: Any = None) -> None:
        given = merging if isinstance(merging, Assignment) else assigned(merging)
        super().__init__(given, number, states)

    @classmethod
    def load(cls, merging: Merging, number: int, data: bytes) -> "Shard":
        """The shard that was dumped."""
        return super().load(merging if isinstance(merging, Assignment) else assigned(merging), number, data)

    @property
    def frontiers(self) -> dict[str, dict[str, int]]:
        """How far each channel of each replica is."""
        return self.gates[ROWS_SOURCE].channels.saved()

    @property
    def merge(self) -> Merge:
        """The kernel."""
        ((_, _, kernel),) = self.flow.kernels()
        assert isinstance(kernel, Merge)
        return kernel


def assigned(merging: Merging) -> Assignment:
    """A merge of the rows that tests make, as a plan."""
    return assignment_of(ORDERED, merging, ROWS, 1)


def event(value: str, start: int, end: int) -> Insert:
    """An event by its one payload column."""
    return Insert({"value": value}, start, end)


def said(*elements: Element | Control, who: str = "a", channel: str = "x", first: int = 0) -> list[Said]:
    """What a channel says, from one place in its order on."""
    return [Said(who, element, channel, first + n) for n, element in enumerate(elements)]


def parcels(*tasks: list[Said], ordered: bool = True, rows: int = 1000) -> list[Parcel]:
    """What tasks pack for the one shard there is."""
    packing = Packing(ORDERED if ordered else UNORDERED, 1, rows, ordered=ordered, edge=ROWS_SOURCE)
    return [
        parcel
        for number, task in enumerate(tasks)
        for _, parcel in packing.parcels(
            [[read_rows(packing.layout, record_batch(task), Place("task", 0, number << 40))]]
        )
    ]


def hear(shard: Shard, *tasks: list[Said], ordered: bool = True, rows: int = 1000) -> list[Element]:
    """What comes of one micro-batch in which nothing is refused."""
    heard = shard.receive(parcels(*tasks, ordered=ordered, rows=rows))
    assert not heard.refused
    return [element for batch in heard.output for element in batch.elements()]
