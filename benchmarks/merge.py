"""Logical merge: throughput of every case and of baselines, stables, lag, memory, cold start.

./run bench merge                      all of it
./run bench merge cases stables        only these; also baselines, lag, memory, single, cold

The workload is that of LM VI-B: payloads of an integer and a string, 20 % of the events late, 1 % stables,
about 10,000 active events, three replicas. Arrow record batches go in, Arrow record batches come out. Figures
are elements per second of processor time (all threads), medians, everything in one run.
"""

import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial

import numpy as np
import pyarrow as pa
from baselines.cleansed import Cleansed
from baselines.naive import Naive
from baselines.paper import Paper
from baselines.pure_python import PurePython, tuples
from numpy.typing import NDArray

from anabranch import Case, Merger
from anabranch.testing.workload import Workload

RUNS = 5
WORKLOAD = Workload(events=300_000, payload_bytes=100)


class InOrder(Workload):
    """The same without disorder and without ties, as R0 needs it."""

    @cached_property
    def start(self) -> NDArray[np.int64]:
        """When each event starts, strictly ascending."""
        return super().start + np.arange(self.events)


def replicas(workload: Workload, count: int = 3) -> list[list[pa.RecordBatch]]:
    """The batches of each replica."""
    return [[batch.to_arrow() for batch in workload.replica(number)] for number in range(count)]


def size(streams: list[list[pa.RecordBatch]]) -> int:
    """How many elements there are."""
    return sum(batch.num_rows for stream in streams for batch in stream)


def in_turn(streams: list[list[pa.RecordBatch]], lag: int = 0) -> list[tuple[int, pa.RecordBatch]]:
    """A batch of each in turn; every replica is ``lag`` batches behind the one before it."""
    steps = [
        (step + lag * number, number, batch)
        for number, stream in enumerate(streams)
        for step, batch in enumerate(stream)
    ]
    return [(number, batch) for _, number, batch in sorted(steps, key=lambda row: row[:2])]


def merged(case: Case, turns: list[tuple[int, pa.RecordBatch]], inputs: int) -> Merger:
    """All turns through one merger."""
    merger = Merger(case)
    for number in range(inputs):
        merger.attach(str(number))
    for number, batch in turns:
        merger.push(str(number), batch)
    return merger


def seconds(work: Callable[[], object], runs: int = RUNS) -> float:
    """Processor time of this process, the median of some runs after one that does not count."""
    work()
    found = []
    for _ in range(runs):
        gc.collect()
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return statistics.median(found)


def rate(work: Callable[[], object], elements: int, runs: int = RUNS) -> float:
    """Million elements per second."""
    return elements / seconds(work, runs) / 1e6


def cases() -> None:
    """Throughput of every case on streams that it admits; R3 and R4 on disordered ones too."""
    print("\ncases, M elements/s             100 bytes   1000 bytes")
    sizes = {100: 300_000, 1000: 100_000}
    streams = {
        width: replicas(InOrder(events=events, payload_bytes=width, disorder=0.0))
        for width, events in sizes.items()
    }
    late = {width: replicas(Workload(events=events, payload_bytes=width)) for width, events in sizes.items()}
    for name, case, data in [(f"{case.name}, in order", case, streams) for case in Case] + [
        (f"{case.name}, 20 % late", case, late) for case in (Case.R3, Case.R4)
    ]:
        figures = [
            rate(partial(merged, case, turns, 3), size(data[width]))
            for width in (100, 1000)
            for turns in [in_turn(data[width])]
        ]
        print(f"{name:<30} {figures[0]:10.2f} {figures[1]:12.2f}")


def baselines() -> None:
    """The same streams through other ways to do it, and pure Python with its tuples made beforehand too."""
    streams = replicas(replace(WORKLOAD, events=100_000))
    turns, elements = in_turn(streams), size(streams)
    plain = [(number, tuples(_batch(batch))) for number, batch in turns]
    rows = {
        "R3": lambda: merged(Case.R3, turns, 3),
        "naive R3, an index per input": lambda: _all(Naive(3), [(i, _batch(b)) for i, b in turns]),
        "Cleanse, then R1": lambda: _all(Cleansed(3), [(i, _batch(b)) for i, b in turns]),
        "pure Python as the paper lists it": lambda: _in_arrow(Paper(), turns),
        "the same, in tuples ": lambda: _all(Paper(), plain),
        "pure Python with heaps": lambda: _in_arrow(PurePython(), turns),
        "the same, in tuples": lambda: _all(PurePython(), plain),
    }
    print("\nbaselines                       M elements/s    R3 is ahead by")
    ours = None
    for name, work in rows.items():
        figure = rate(work, elements, 1 if "Python" in name or "same" in name else 3)
        ours = ours or figure
        print(f"{name:<34} {figure:8.3f} {ours / figure:14.1f}x")


def stables() -> None:
    """Throughput as stables become frequent."""
    print("\nstables in R3                   M elements/s")
    for share in (0.00001, 0.0001, 0.001, 0.01, 0.1):
        streams = replicas(replace(WORKLOAD, stable_freq=share))
        turns = in_turn(streams)
        print(f"{share:<30.3%} {rate(partial(merged, Case.R3, turns, 3), size(streams)):8.2f}")


def lag() -> None:
    """Throughput as replicas fall behind one another."""
    print("\nlag in R3, batches of 65,536    M elements/s")
    streams = replicas(WORKLOAD)
    for behind in (0, 1, 2):
        turns = in_turn(streams, behind)
        print(f"{behind:<30} {rate(partial(merged, Case.R3, turns, 3), size(streams)):8.2f}")


def memory() -> None:
    """Bytes held at most, by inputs and by length of the run, payloads of 1000 bytes."""
    print("\nmemory in R3, 1000 bytes        most held, MiB     to 2 inputs")
    first = None
    wide = replace(WORKLOAD, payload_bytes=1000, events=60_000)
    for inputs in (2, 5, 10):
        most = _most_held(Merger(Case.R3), wide, inputs)
        first = first or most
        print(f"{inputs:>2} inputs {'':<22} {most / 2**20:8.1f} {most / first:16.2f}x")
    first = None
    for inputs in (2, 5, 10):
        most = _most_held(Naive(inputs), wide, inputs)
        first = first or most
        print(f"{inputs:>2} inputs, naive {'':<15} {most / 2**20:8.1f} {most / first:16.2f}x")
    for times in (1, 10):
        most = _most_held(Merger(Case.R3), replace(wide, payload_bytes=100, events=200_000 * times), 2)
        print(f"run {times:>2} times as long, 100 bytes {most / 2**20:9.1f}")


def single() -> None:
    """What a push of one element takes."""
    print("\npushes of one element           microseconds")
    batches = [
        batch[row : row + 1]
        for batch in InOrder(events=2000, disorder=0.0, payload_bytes=100).replica(0)
        for row in range(len(batch))
    ]
    for case in Case:
        turns = [(number, batch.to_arrow()) for batch in batches for number in range(2)]
        taken = seconds(partial(merged, case, turns, 2), 3)
        print(f"{case.name:<30} {taken / len(turns) * 1e6:8.0f}")


def cold() -> None:
    """A fresh process: import, and one merge; with what it compiles in the cache, and without."""
    program = (
        "from anabranch import Insert, Merger, Stable\n"
        "merger = Merger()\n"
        "merger.attach('a')\n"
        "assert merger.push('a', [Insert({'v': 1}, 1, 5), Stable(9)])\n"
    )
    print("\na fresh process                 seconds")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("first use on a machine", "later ones"):
            begin = time.perf_counter()
            subprocess.run(
                [sys.executable, "-c", program], check=True, env=os.environ | {"NUMBA_CACHE_DIR": folder}
            )
            print(f"{name:<30} {time.perf_counter() - begin:8.2f}")


def _batch(rows: pa.RecordBatch) -> object:
    from anabranch import Batch

    return Batch.from_arrow(rows)


def _all(merge: object, turns: list[tuple[int, object]]) -> None:
    for number, batch in turns:
        merge.push(number, batch)


def _in_arrow(merge: Paper | PurePython, turns: list[tuple[int, pa.RecordBatch]]) -> None:
    """Arrow in, Arrow out, with a tuple per element between."""
    for number, batch in turns:
        said = merge.push(number, tuples(_batch(batch)))
        rows = [
            {"kind": one[0], "start": one[1], "end": 0, "old_end": 0, "number": None, "text": None}
            if one[0] == "|"
            else {
                "kind": one[0],
                "start": one[2],
                "end": one[-1],
                "old_end": one[3],
                "number": one[1][0],
                "text": one[1][1],
            }
            for one in said
        ]
        pa.RecordBatch.from_pylist(rows) if rows else None


def _most_held(merge: Merger | Naive, workload: Workload, inputs: int) -> int:
    """Bytes held after each step, at most; the streams come in small steps so that none is far ahead."""
    if isinstance(merge, Merger):
        for number in range(inputs):
            merge.attach(str(number))
    most = 0
    for step in zip(*(workload.replica(number) for number in range(inputs)), strict=True):
        for begin in range(0, max(map(len, step)), 4096):
            for number, batch in enumerate(step):
                part = batch[begin : begin + 4096]
                if isinstance(merge, Merger):
                    merge.push(str(number), part)
                else:
                    merge.push(number, part)
            most = max(most, merge.status().bytes if isinstance(merge, Merger) else merge.nbytes)
    return most


PARTS = {
    "cases": cases,
    "baselines": baselines,
    "stables": stables,
    "lag": lag,
    "memory": memory,
    "single": single,
    "cold": cold,
}


def main() -> None:
    """Measure and print what was asked for."""
    for name in sys.argv[1:] or PARTS:
        if name not in PARTS:
            sys.exit(f"there is no part {name!r}, only {', '.join(PARTS)}")
        PARTS[name]()


if __name__ == "__main__":
    main()
