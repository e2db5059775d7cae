"""Three copies of a stream merged by us, DuckDB, Polars, plain Python, Bytewax and Pathway, in one run.

Job A: every logical row once. Job B: the same where each copy corrects the end of 10 % of its rows later, and
the latest end of every row is wanted. Rows have a time, an end, a number and a text of 100 bytes; each copy
is shuffled locally, and the copies arrive batch by batch in turn.

What counts is input rows per second of CPU (user and system, children included; the median of the runs), with
the input in memory in the form that the system likes best. Another run reads the input from Arrow files as it
goes: so much is the rate with reading, and by so much the peak memory of the process rises. Each run has a
process of its own, which has done the same on little data before, and must come to the right number of rows
and sum of ends. The other systems are installed into `.tools/peers` on first use.

    ./run bench merge_peers
    ./run bench merge_peers --rows 100000 --runs 3 --only ours duckdb
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from anabranch.model.batch import Kind
from anabranch.testing.workload import Workload

HERE = Path(__file__).parent
TOOLS = HERE.parent / ".tools"
LOCK = HERE / "peers.lock"
COPIES = 3
BATCH = 16_384
LITTLE = 5_000


@dataclass(frozen=True)
class System:
    """One way to do the jobs: its file in `peers`, the package it needs, and what it leaves to the user."""

    module: str
    package: str | None
    leaves_out: str


SYSTEMS = {
    "ours": System("anabranch_merge", None, "-"),
    "duckdb": System("duckdb_distinct", "duckdb", "not a stream: all input first, then the final rows"),
    "polars": System("polars_unique", "polars", "not a stream: all input first, then the final rows"),
    "python": System("python_dict", None, "no time: memory grows for ever, nothing is ever final"),
    "bytewax": System("bytewax_shards", "bytewax", "eviction by the user: what lags further comes out twice"),
    "pathway": System("pathway_upserts", "pathway", "keys are kept for ever, whoever showed them"),
    "pathway-csv": System("pathway_files", "pathway", "not a stream: all input first, then the final rows"),
}


def workload(rows: int, job: str) -> Workload:
    """The logical stream of a job; a row comes up to a thousand others late."""
    return Workload(
        events=rows, payload_bytes=100, disorder=1.0, delay=10_000_000, revisions=0.1 if job == "B" else 0.0
    )


def record(folder: Path, stream: Workload) -> int:
    """Write the copies, one file each, and tell how many rows they have."""
    folder.mkdir(parents=True)
    rows = 0
    for number in range(COPIES):
        batches = [b[n : n + BATCH] for b in stream.replica(number) for n in range(0, len(b), BATCH)]
        rows += sum(int(np.count_nonzero(batch.kind != Kind.STABLE)) for batch in batches)
        with pa.ipc.new_stream(folder / str(number), batches[0].to_arrow().schema) as writer:
            for batch in batches:
                writer.write_batch(batch.to_arrow())
    return rows


def uv() -> str:
    """The project's own, or the one on the path."""
    own = TOOLS / "uv/bin/uv"
    return str(own) if own.exists() else "uv"


def python_of_peers() -> Path:
    """The interpreter of `.tools/peers`, which is made if it is not there."""
    python = TOOLS / "peers/bin/python"
    if not python.exists():
        print("making .tools/peers for the other systems; this takes 1.6 GB", file=sys.stderr)
        subprocess.run([uv(), "venv", "-q", "--python", sys.executable, TOOLS / "peers"], check=True)
    return python


def interpreter(system: System) -> Path | None:
    """The Python to run a system with; None, with a message, where its package cannot be installed."""
    if system.package is None:
        return Path(sys.executable)
    python = python_of_peers()
    install = [uv(), "pip", "install", "-q", "--python", python, "--constraints", LOCK]  # hashes are checked
    done = subprocess.run([*install, system.package, "pyarrow"], capture_output=True, text=True, check=False)
    if done.returncode:
        print(
            f"{system.package} is left out, it cannot be installed:\n{done.stderr.strip()}", file=sys.stderr
        )
        return None
    return python


def measured(python: Path, system: System, folder: Path, job: str, what: str) -> dict[str, Any]:
    """What one run took, in a process of its own."""
    command = [python, "-m", "peers.measure", system.module, folder, job, what]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{system.module} failed in job {job}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def check(name: str, result: dict[str, Any], stream: Workload) -> None:
    """Stop at a result that is not what the copies mean."""
    found = result["rows"], result["ends"]
    right = stream.events, int((stream.start + stream.duration).sum())
    if found != right:
        raise SystemExit(f"{name} came to (rows, sum of ends) {found}, right is {right}")


def compared(pythons: dict[str, Path], stream: Workload, job: str, runs: int) -> dict[str, tuple[str, ...]]:
    """For each system the rates without and with reading, and the memory, of one job."""
    rates: dict[str, list[float]] = {name: [] for name in pythons}
    reading = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        record(folder / "little" / job, replace(stream, events=LITTLE))
        rows = record(folder / "all" / job, stream)
        print(f"job {job}: {rows:,} rows in, {stream.events:,} rows out", flush=True)
        for what in ["memory", *["time"] * runs]:
            for name, python in pythons.items():
                result = measured(python, SYSTEMS[name], folder, job, what)
                check(name, result, stream)
                rate = rows / result["seconds"] / 1000
                if what == "memory":
                    reading[name] = f"{rate:,.0f}", f"{result['mib']:,}"
                else:
                    rates[name].append(rate)
    return {name: (ranged(rates[name]), *reading[name]) for name in pythons}


def ranged(rates: list[float]) -> str:
    """The median, and of several the least and the greatest."""
    spread = f" ({min(rates):,.0f}-{max(rates):,.0f})" if len(rates) > 1 else ""
    return f"{statistics.median(rates):,.0f}{spread}"


def lines(table: list[tuple[str, ...]]) -> Iterator[str]:
    """A table as text; all columns but the first and last to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for name, *middle, last in table:
        cells = [f"{cell:>{width}}" for cell, width in zip(middle, widths[1:-1], strict=True)]
        yield "  ".join([f"{name:<{widths[0]}}", *cells, last])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="logical rows; each copy has them all")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    options = parser.parse_args()
    found = {name: interpreter(SYSTEMS[name]) for name in options.only}
    pythons = {name: python for name, python in found.items() if python}
    a, b = (compared(pythons, workload(options.rows, job), job, options.runs) for job in "AB")
    head = ("k rows/CPU s", *(h for job in "AB" for h in (job, "reading", "MiB")), "leaves out")
    body = [(name, *a[name], *b[name], SYSTEMS[name].leaves_out) for name in pythons]
    print(*lines([head, *body]), sep="\n")


if __name__ == "__main__":
    main()
