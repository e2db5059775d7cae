"""Microseconds of CPU that a promise costs where one of many replicas has moved.

    ./run bench promises
    ./run bench promises --replicas 1000 100000

A gate has so many replicas, of one channel each, under a bound on disorder. Then one of them at a time sends
an event; what the gate takes to admit it and to tell the flow how far replicas are is timed call by call.
"""

import argparse
from statistics import median
from time import process_time

from anabranch import Batch, Insert
from anabranch.progress.admission import Admission
from anabranch.progress.channel_rows import ChannelRows
from anabranch.progress.gate import Gate
from anabranch.progress.models.disorder import Disorder


class Nowhere:
    """An entrance behind which there is no flow."""

    def push(self, *_: object) -> None:
        """Nothing."""

    advance = begins = detach = idle = refuse = push

    def attach(self, *_: object, **__: object) -> None:
        """Nothing."""


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="./run bench promises")
    parser.add_argument("--replicas", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--calls", type=int, default=2_000, help="events (default %(default)s)")
    given = parser.parse_args()
    for count in given.replicas:
        admit, promise = measured(count, given.calls)
        print(f"{count:>9,} replicas: admit {admit * 1e6:6.1f} µs, promise {promise * 1e6:6.1f} µs")


def measured(count: int, calls: int) -> tuple[float, float]:
    """Median seconds to admit an event and to promise."""
    gate = Gate(Admission(replicas=True, lossy=True, progress=Disorder(5)), Nowhere())
    gate.open()
    first = Batch.of([Insert({"v": 1}, 10, 11)])
    for n in range(count):
        gate.admit(ChannelRows.of(first, f"replica {n}"))
    gate.promise()
    admits, promises = [], []
    for n in range(calls):
        rows = ChannelRows.of(Batch.of([Insert({"v": 1}, 20 + n, 21 + n)]), f"replica {n % count}")
        begun = process_time()
        gate.admit(rows)
        between = process_time()
        gate.promise()
        admits.append(between - begun)
        promises.append(process_time() - between)
    return median(admits), median(promises)


if __name__ == "__main__":
    main()
