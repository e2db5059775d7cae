"""Generate streams: replicas that look different and mean the same.

Without --case, the workload of the papers: disorder, stables and optional revisions, in columns and fast.
With --case, small random streams of that merge case with wrong ends, spurious events, ties and repeats.

examples:
  anabranch generate feed.parquet --events 1000000
  anabranch generate feed.jsonl --events 1000 --replicas 3     feed-0.jsonl, feed-1.jsonl, feed-2.jsonl
  anabranch generate - --case R3 --events 8 --format text
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.cli.arguments import FORMATS, add_json

if TYPE_CHECKING:
    from anabranch.model.batch import Batch


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``generate``."""
    parser.add_argument("out", metavar="OUT", help="the file to write, or - for standard output")
    parser.add_argument(
        "--events", type=int, default=1000, help="how many events (default 1000; with --case at most)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="the same seed gives the same streams (default 0)"
    )
    parser.add_argument("--replicas", type=int, default=1, help="how many files, numbered before the ending")
    parser.add_argument(
        "--case", choices=("R0", "R1", "R2", "R3", "R4"), help="small streams of a merge case"
    )
    parser.add_argument("--stable-freq", type=float, default=0.01, help="share of stables (default 0.01)")
    parser.add_argument(
        "--active", type=int, help="events alive at a time (default 10000, or a tenth of all)"
    )
    parser.add_argument(
        "--max-gap", type=int, default=20_000, help="greatest step between starts (default 20000)"
    )
    parser.add_argument("--disorder", type=float, default=0.2, help="share of late events (default 0.2)")
    parser.add_argument("--revisions", type=float, default=0.0, help="share of revised events (default 0)")
    parser.add_argument("--payload-bytes", type=int, default=100, help="length of the text (default 100)")
    parser.add_argument(
        "--format", choices=FORMATS, help="format of the files; their endings tell it otherwise"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Write the files."""
    import json

    from anabranch.connectors.files.writing import Target

    if options.replicas < 1:
        raise ValueError(f"--replicas is how many files to write, {options.replicas} is none")
    if options.replicas > 1 and options.out == "-":
        raise ValueError("several replicas need several files, - is one")
    written = {}
    for number, stream in enumerate(_streams(options)):
        target = Target.named(_numbered(options.out, number, options.replicas), options.format)
        written[target.path] = target.write(stream)
    for path, count in written.items():
        if not options.json:
            print(f"{path}: {count} elements", file=sys.stderr)
    if options.json:
        print(json.dumps(written), file=sys.stderr if options.out == "-" else sys.stdout)
    return 0


def _streams(options: argparse.Namespace) -> list[Iterator[Batch]]:
    if options.case:
        from random import Random

        from anabranch.model.batch import Batch
        from anabranch.model.properties import Case
        from anabranch.testing.presentations import present
        from anabranch.testing.references import Shape, reference

        random, case = Random(options.seed), Case[options.case]
        shape = Shape(events=options.events, payloads=26, horizon=max(2, options.events))
        events = reference(random, case=case, shape=shape)
        return [iter([Batch.of(present(events, random, case=case))]) for _ in range(options.replicas)]
    from anabranch.testing.workload import Workload

    workload = Workload(
        events=options.events,
        seed=options.seed,
        stable_freq=options.stable_freq,
        active=max(1, min(10_000, options.events // 10)) if options.active is None else options.active,
        max_gap=options.max_gap,
        disorder=options.disorder,
        revisions=options.revisions,
        payload_bytes=options.payload_bytes,
    )
    return [workload.replica(number) for number in range(options.replicas)]


def _numbered(out: str, number: int, replicas: int) -> str:
    path = Path(out)
    return out if replicas == 1 else str(path.with_name(f"{path.stem}-{number}{path.suffix}"))
