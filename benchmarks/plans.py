"""A plan beside the merge in it: elements per CPU second, and what a push of one element takes.

    ./run bench plans
    ./run bench plans --events 100000 --rounds 5

The same replicas go through a merge by itself (`Merger`) and through a plan that filters, selects and merges
them, in turn, in one process; batches are new each time, so that each hashes them. Pushes of one element are
timed one by one, after a warm-up; the median is printed.
"""

import argparse
from dataclasses import replace
from statistics import median
from time import perf_counter, process_time

import anabranch as ab
from anabranch import Batch, Insert, Merger, Stable, col
from anabranch.testing.workload import Workload


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prog="./run bench plans")
    parser.add_argument(
        "--events", type=int, default=200_000, help="events of each replica (default %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=9, help="how often each is run (default %(default)s)")
    parser.add_argument(
        "--pushes", type=int, default=3_000, help="pushes of one element (default %(default)s)"
    )
    given = parser.parse_args()
    workload = Workload(events=given.events, seed=1, active=10_000, revisions=0.1)
    replicas = {f"r{n}": list(workload.replica(n)) for n in range(2)}
    schema = replicas["r0"][0].payload.schema
    count = sum(len(batch) for batches in replicas.values() for batch in batches)
    alone, planned = [], []
    for _ in range(given.rounds):
        alone.append(count / timed(lambda: merge_alone(replicas)))
        planned.append(count / timed(lambda: merge_in_plan(replicas, schema)))
    print(f"{count:,} elements of two replicas, million per CPU second, median of {given.rounds}")
    print(f"  merge alone                {median(alone) / 1e6:6.2f}")
    share = median(planned) / median(alone)
    print(f"  filter, select, merge      {median(planned) / 1e6:6.2f}   {share:.2f} of it")
    print(f"a push of one element, median of {given.pushes:,}, microseconds")
    for name, push in (("merge alone", one_by_one_alone), ("filter, select, merge", one_by_one_in_plan)):
        print(f"  {name:<25}  {median(push(given.pushes)) * 1e6:6.0f}")


def timed(work) -> float:  # type: ignore[no-untyped-def]
    """CPU seconds that something takes."""
    begin = process_time()
    work()
    return process_time() - begin


def merge_alone(replicas: dict[str, list[Batch]]) -> None:
    """The replicas through a merger, batch by batch."""
    merger = Merger()
    for name in replicas:
        merger.attach(name, properties="keyed")
    for batches in zip(*replicas.values(), strict=False):
        for name, batch in zip(replicas, batches, strict=True):
            merger.push(name, replace(batch))


def merge_in_plan(replicas: dict[str, list[Batch]], schema) -> None:  # type: ignore[no-untyped-def]
    """The replicas through a plan."""
    first = schema.names[0]
    streams = {
        name: ab.source(name, schema, properties="keyed", key=schema.names)
        .filter(col(first).is_not_null())
        .select(*schema.names)
        for name in replicas
    }
    job = ab.merge(streams).open()
    for batches in zip(*replicas.values(), strict=False):
        for name, batch in zip(replicas, batches, strict=True):
            job.push(name, replace(batch))


def one_by_one_alone(pushes: int) -> list[float]:
    """Seconds of each push of one element to a merger."""
    merger = Merger("R3")
    for name in ("east", "west"):
        merger.attach(name)
    return each(pushes, merger.push)


def one_by_one_in_plan(pushes: int) -> list[float]:
    """Seconds of each push of one element to a plan."""
    streams = {
        name: ab.source(name, {"room": "string", "level": "int64"}, key=["room", "level"])
        .filter(col("level") >= 0)
        .select("room", "level")
        for name in ("east", "west")
    }
    job = ab.merge(streams, case="R3").open()
    return each(pushes, job.push)


def each(pushes: int, push) -> list[float]:  # type: ignore[no-untyped-def]
    """Seconds of each push, a stable after every hundred, the first tenth left out."""
    found = []
    for n in range(pushes):
        for name in ("east", "west"):
            element = Insert({"room": f"room {n % 50}", "level": n}, n, n + 100)
            if n % 100 == 99:
                push(name, Batch.of([Stable(n)]))
            batch = Batch.of([element])
            begin = perf_counter()
            push(name, batch)
            found.append(perf_counter() - begin)
    return found[pushes // 5 :]


if __name__ == "__main__":
    main()
