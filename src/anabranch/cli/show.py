"""Show the relation that a recorded stream denotes.

The relation is a bag of events with lifetimes; the freeze status says what may still happen to each.

examples:
  anabranch show feed.jsonl                 after all elements
  anabranch show feed.jsonl --at 12         after the first 12
  anabranch show feed.parquet --json        for a program
  anabranch show feed.jsonl --history       how every event came to be what it is
  cat feed.jsonl | anabranch show -         from standard input
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from anabranch.cli.arguments import add_json, add_policy, add_reading, policy_of, source_of

if TYPE_CHECKING:
    from anabranch.model.batch import Batch
    from anabranch.model.recording import Input


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``show``."""
    parser.add_argument("file", help="a recorded stream, or - for standard input")
    parser.add_argument("--at", type=int, metavar="N", help="after the first N elements instead of all")
    parser.add_argument("--history", action="store_true", help="every version of every event, by arrival")
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="rows to print (default 50)")
    parser.add_argument("--no-timeline", action="store_true", help="the table alone")
    add_reading(parser)
    add_policy(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print the relation of each input."""
    from anabranch.cli import quarantine
    from anabranch.cli.progress import progress
    from anabranch.model.recording import Recording

    if options.at is not None and options.at < 0:
        raise ValueError(f"--at counts elements from the start, {options.at} is before it")
    policy = policy_of(options)
    recording = Recording(policy, alone=options.file)
    with progress(f"reading {options.file}") as done:
        batches = _first(source_of(options, options.file).batches(policy=policy, progress=done), options.at)
        if options.history:
            return _print_history(list(batches), options)
        for batch in batches:
            recording.apply(batch)
    if options.quarantine:
        quarantine.write(policy.violations, options.quarantine)  # type: ignore[union-attr]
    for name, an_input in recording.inputs.items():
        if options.json:
            print(json.dumps(_summary(name, an_input), ensure_ascii=False))
        else:
            _print_relation(name, an_input, options)
    return 0


def _first(batches: Iterator[Batch], count: int | None) -> Iterator[Batch]:
    for batch in batches:
        if count is None:
            yield batch
            continue
        yield batch[:count]
        count -= min(count, len(batch))
        if count == 0:
            return


def _summary(name: str, an_input: Input) -> dict[str, Any]:
    from anabranch.model.freeze import freeze
    from anabranch.model.json_lines import json_payload
    from anabranch.model.time import BEGINNING, FOREVER

    relation = an_input.relation
    rows = sorted(relation.current().rows(), key=lambda row: (row[0].start, row[0].end, str(row[0].payload)))
    return {
        "input": name,
        "attached": an_input.attached,
        "elements": an_input.relation.position,
        "frontier": None if relation.frontier == BEGINNING else relation.frontier,
        "closed": relation.frontier == FOREVER,
        "events": [
            {
                "payload": json_payload(event.payload, as_text=True),
                "start": event.start,
                "end": None if event.end == FOREVER else event.end,
                "count": count,
                "freeze": str(freeze(event.start, event.end, relation.frontier)),
            }
            for event, count in rows
        ],
    }


def _print_relation(name: str, an_input: Input, options: argparse.Namespace) -> None:
    from rich.console import Console
    from rich.table import Table

    from anabranch.cli.timeline import timeline
    from anabranch.model.freeze import freeze
    from anabranch.model.notation import lifetime_text
    from anabranch.model.time import tick_text

    console = Console(highlight=False)
    relation = an_input.relation
    rows = sorted(relation.current().rows(), key=lambda row: (row[0].start, row[0].end, str(row[0].payload)))
    state = "" if an_input.attached else ", detached"
    console.print(
        f"{name}: {an_input.relation.position} elements, {len(relation)} events, "
        f"stable to {tick_text(relation.frontier)}{state}",
        markup=False,
    )
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("payload", "lifetime", "count", "status"):
        table.add_column(column, justify="right" if column == "count" else "left")
    for event, count in rows[: options.limit]:
        status = freeze(event.start, event.end, relation.frontier)
        table.add_row(
            show_payload(event.payload), lifetime_text(event.start, event.end), str(count), str(status)
        )
    console.print(table)
    if len(rows) > options.limit:
        console.print(f"… and {len(rows) - options.limit} more (--limit {len(rows)} shows all)")
    if rows and not options.no_timeline:
        console.print()
        drawn = timeline([e for e, _ in rows[: options.limit]], relation.frontier, width=console.width)
        for line in drawn:
            print(line)


def show_payload(payload: Any) -> str:
    """A payload for people: in the notation, or what the notation has no words for as text."""
    from anabranch.model.json_lines import json_payload
    from anabranch.model.notation import payload_text

    return payload_text(json_payload(payload, as_text=True))


def _print_history(batches: list[Batch], options: argparse.Namespace) -> int:
    from anabranch.model.history import history
    from anabranch.model.json_lines import json_payload
    from anabranch.model.notation import lifetime_text
    from anabranch.model.time import FOREVER

    if any(batch.input is not None for batch in batches):
        raise ValueError(f"a history is of one stream, {options.file} records several inputs")
    for version in history(batches):
        event = version.event
        if options.json:
            row = {
                "payload": json_payload(event.payload, as_text=True),
                "start": event.start,
                "end": None if event.end == FOREVER else event.end,
                "arrived": version.arrived,
                "replaced": version.replaced,
            }
            print(json.dumps(row, ensure_ascii=False))
        else:
            until = "now" if version.replaced is None else str(version.replaced)
            lifetime = lifetime_text(event.start, event.end)
            sys.stdout.write(f"{version.arrived:>6} to {until:<6} {show_payload(event.payload)} {lifetime}\n")
    return 0
