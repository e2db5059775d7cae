"""The relation of a recorded stream from Parquet, beside one SQL query of DuckDB that computes the same.

Both read the same file and write the events to a Parquet file, alternating, in one process; what counts is
the ratio of the medians. The peak memory of each is measured in processes of its own.

    ./run bench relation                    1,000,000 elements
    ./run bench relation --events 5000000
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from anabranch import Relation
from anabranch.connectors.files.reading import Source
from anabranch.connectors.files.writing import Target
from anabranch.testing.workload import Workload

QUERY = """
    COPY (
        SELECT number, text, start, "end", sum(copies) AS count FROM (
            SELECT number, text, start, "end", 1 AS copies FROM '{file}' WHERE kind <> 'stable'
            UNION ALL
            SELECT number, text, start, old_end, -1 FROM '{file}' WHERE kind = 'adjust'
        )
        WHERE "end" IS NULL OR "end" > start
        GROUP BY ALL HAVING sum(copies) <> 0
    ) TO '{out}' (FORMAT parquet, COMPRESSION uncompressed)
"""


def with_duckdb(file: str, out: str) -> None:
    """One query over the whole file."""
    duckdb.sql(QUERY.format(file=file, out=out))


def with_relation(file: str, out: str) -> None:
    """One pass over the file; what can never change again is written and forgotten."""
    relation = Relation()
    writer = None
    for batch in Source.named(file).batches():
        relation.apply(batch)
        events = relation.release().to_arrow()
        if writer is None:
            writer = pq.ParquetWriter(out, events.schema, compression="none", use_dictionary=False)
        writer.write_table(events)
    assert writer is not None
    writer.write_table(relation.current().to_arrow())
    writer.close()


WAYS: dict[str, Callable[[str, str], None]] = {"anabranch": with_relation, "duckdb": with_duckdb}


def seconds(way: Callable[[str, str], None], file: str, out: str) -> float:
    """How long one run takes."""
    begin = time.perf_counter()
    way(file, out)
    return time.perf_counter() - begin


def peak(name: str, file: str, out: str) -> int:
    """By how many MiB the peak memory of a process rises that has done the same with a small file before."""
    command = [sys.executable, __file__, "--only", name, "--file", file, "--out", out]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def only(name: str, file: str, out: str) -> None:
    """Run one way and print by how much it raised this process's peak memory."""
    small = f"{out}.small"
    Target.named(f"{small}.parquet").write(Workload(events=1000, payload_bytes=8, revisions=0.1).replica(0))
    WAYS[name](f"{small}.parquet", small)
    before = high_water()
    WAYS[name](file, out)
    print((high_water() - before) // 1024)


def high_water() -> int:
    """Peak resident memory of this process in KiB (getrusage would carry over the parent's)."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def main() -> None:
    """Measure and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--events", type=int, default=900_000)
    parser.add_argument("--payload-bytes", type=int, default=100)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--only", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--file", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        only(options.only, options.file, options.out)
        return
    workload = Workload(events=options.events, revisions=0.1, payload_bytes=options.payload_bytes)
    with tempfile.TemporaryDirectory() as folder:
        file, out = f"{folder}/stream.parquet", f"{folder}/events.parquet"
        elements = Target.named(file).write(workload.replica(0))
        print(f"{elements:,} elements, {Path(file).stat().st_size >> 20} MiB of Parquet")
        times: dict[str, list[float]] = {name: [] for name in WAYS}
        for _ in range(options.runs + 1):
            for name, way in WAYS.items():
                times[name].append(seconds(way, file, out))
                if pq.read_metadata(out).num_rows != options.events:
                    raise SystemExit(f"{name} did not find the {options.events} events")
        medians = {name: statistics.median(runs[1:]) for name, runs in times.items()}
        for name, median in medians.items():
            rate = elements / median / 1e6
            memory = peak(name, file, out)
            print(f"{name:<10} {median:.3f} s  {rate:.2f} M elements/s  {memory} MiB")
        print(f"duckdb / anabranch: {medians['duckdb'] / medians['anabranch']:.2f}")


if __name__ == "__main__":
    main()
