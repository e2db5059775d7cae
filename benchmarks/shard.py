"""One shard by itself: rows through few channels and many, and rows that it leaves out, by what is done then.

./run bench shard

Three replicas tell the same 40,000 events in each of five rounds, from rows that are packed to what the shard
says; the same again, as rows that repeat a key or are behind the stable of their replica. Rows per second of
wall time, the median of the rounds after the first, all in one process.
"""

import statistics
import time
from collections.abc import Iterator
from datetime import timedelta

import numpy as np
import pyarrow as pa

from anabranch import Drop, Fact, Properties, Quarantine
from anabranch.engines.spark.assignment import Assignment
from anabranch.engines.spark.refused_rows import RefusedRows
from anabranch.engines.spark.rows_merge import REMEMBER, ROWS_SOURCE
from anabranch.engines.spark.shard import Shard
from anabranch.engines.spark.transport import parcel
from anabranch.engines.spark.transport.packing import Packing
from anabranch.kernels.answers import Answers
from anabranch.model.validity import Policy
from anabranch.plan.levels import levels
from anabranch.plan.merge import Merge
from anabranch.plan.source import Source
from anabranch.rows.layout import Layout
from anabranch.rows.reading import Place, read_rows

EVENTS, ROUNDS = 40_000, 5
DAY = 1_772_366_400_000_000


def rows(first: int, again: int, channels: int) -> pa.RecordBatch:
    """What three replicas say in a round, each the same; ``again`` sets it apart in their order."""
    number = np.arange(first, first + EVENTS)
    columns = {
        "replica": np.repeat(["a", "b", "c"], EVENTS),
        "channel": np.tile((number % channels).astype(str), 3),
        "sequence": np.tile(2 * first + again * EVENTS + np.arange(EVENTS), 3),
        "at": pa.array(np.tile(DAY + number, 3)).cast(pa.timestamp("us", "UTC")),
        "text": np.tile([f"{n:092}" for n in number], 3),
    }
    return pa.RecordBatch.from_pydict(columns)


def seconds(
    channels: int, disorder: int, answer: Policy, *facts: Fact, again: bool = False
) -> Iterator[float]:
    """How long each round takes, or what comes again after it."""
    layout = Layout(
        "at",
        replica="replica",
        channel="channel",
        sequence="sequence",
        payload=("text",),
        disorder=timedelta(microseconds=disorder),
    )
    packing = Packing(layout, 1, ordered=True, edge=ROWS_SOURCE)
    schema = rows(0, 0, channels).schema
    promised = Properties.of(*facts)
    source = Source(name=ROWS_SOURCE, columns=schema, layout=layout, replicas=True, declared=promised)
    (level,) = levels(Merge(inputs=(source,), remember=REMEMBER))
    refused_rows = {ROWS_SOURCE: RefusedRows(ROWS_SOURCE, True, clock=source.clock)}
    shard = Shard(Assignment(level, answers=Answers(answer, answer, answer), refused_rows=refused_rows))
    for number in range(ROUNDS):
        for time_again in range(1 + again):
            told = read_rows(layout, rows(number * EVENTS, time_again, channels), Place("rows"))
            parcels = [parcel.to_bytes(part) for _, part in packing.parcels([[told]])]
            begun = time.perf_counter()
            heard = shard.receive([parcel.from_bytes(part) for part in parcels])
            took = time.perf_counter() - begun
            said = sum(map(len, heard.output))
            assert said <= 1 if time_again else said >= EVENTS - 1, "what is at the stable is not behind it"
        yield took


def main() -> None:
    """Print a line for each."""
    for channels in (1, 100, 1000):
        tell(f"used, {channels} channels of a replica", channels, 10, Quarantine())
    for word, answer in (("dropped", Drop()), ("set aside", Quarantine())):
        tell(f"behind the stable, {word}", 1, 0, answer, again=True)
        tell(f"repeating a key, {word}", 1, 10**9, answer, Fact.KEYED, again=True)


def tell(what: str, channels: int, disorder: int, answer: Policy, *facts: Fact, again: bool = False) -> None:
    """Print how many rows a second."""
    took = list(seconds(channels, disorder, answer, *facts, again=again))[1:]
    print(f"{what:<32} {3 * EVENTS / statistics.median(took):>10,.0f} rows/s", flush=True)


if __name__ == "__main__":
    main()
