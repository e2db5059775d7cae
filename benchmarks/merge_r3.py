"""Logical merge of three replicas in case R3, Arrow in and out, on one core, and what hashing takes of it.

./run bench merge_r3
"""

import statistics
import time

from anabranch.kernels.merge.r3 import R3
from anabranch.model.batch import Batch
from anabranch.testing.workload import Workload

RUNS = 5


def merged(replicas: list[list[Batch]], *, hashed: bool) -> float:
    """Seconds to merge the replicas, batch by batch in turn; with their identities known, or not."""
    merge = R3()
    for number in range(len(replicas)):
        merge.attach(str(number))
    for replica in replicas:
        for batch in replica:
            batch.__dict__.pop("identities", None)
            if hashed:
                _ = batch.identities
    begin = time.perf_counter()
    for step in zip(*replicas, strict=True):
        for number, batch in enumerate(step):
            merge.push(str(number), batch)
    return time.perf_counter() - begin


def main() -> None:
    """Measure and print."""
    workload = Workload(events=300_000, payload_bytes=100)
    replicas = [list(workload.replica(number)) for number in range(3)]
    elements = sum(len(batch) for replica in replicas for batch in replica)
    merged(replicas, hashed=False)
    for name, hashed in (("all", False), ("without hashing", True)):
        median = statistics.median(merged(replicas, hashed=hashed) for _ in range(RUNS))
        print(f"{name:<16} {median:.3f} s  {elements / median / 1e6:.2f} M elements/s")


if __name__ == "__main__":
    main()
