"""One shard that is given what channels say, with no Spark and no state store."""

from engines.spark.driving import ORDERED, UNORDERED, Said, record_batch

from anabranch import Insert
from anabranch.engines.spark.shard import Shard
from anabranch.engines.spark.transport.packing import Packing
from anabranch.engines.spark.transport.parcel import Parcel
from anabranch.model.elements import Control, Element
from anabranch.rows.reading import Place, read_rows


def event(value: str, start: int, end: int) -> Insert:
    """An event by its one payload column."""
    return Insert({"value": value}, start, end)


def said(*elements: Element | Control, who: str = "a", channel: str = "x", first: int = 0) -> list[Said]:
    """What a channel says, from one place in its order on."""
    return [Said(who, element, channel, first + n) for n, element in enumerate(elements)]


def parcels(*tasks: list[Said], ordered: bool = True, rows: int = 1000) -> list[Parcel]:
    """What tasks pack for the one shard there is."""
    packing = Packing(ORDERED if ordered else UNORDERED, 1, rows, ordered=ordered)
    return [
        parcel
        for number, task in enumerate(tasks)
        for _, parcel in packing.parcels(
            [[read_rows(packing.layout, record_batch(task), Place("task", 0, number << 40))]]
        )
    ]


def hear(shard: Shard, *tasks: list[Said], ordered: bool = True, rows: int = 1000) -> list[Element]:
    """What comes of one micro-batch in which nothing is refused."""
    heard = shard.hear(parcels(*tasks, ordered=ordered, rows=rows))
    assert not heard.refused
    return [element for batch in heard.output for element in batch.elements()]
