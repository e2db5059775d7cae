"""Show the relation that a recorded stream denotes.

The relation is a bag of events with lifetimes; the freeze status says what may still happen to each.

examples:
  anabranch show feed.jsonl                 after all elements
  anabranch show feed.jsonl --at 12         after the first 12
  anabranch show feed.parquet --json        for a program
  anabranch show feed.jsonl --history       how every event came to be what it is
  cat feed.jsonl | anabranch show -         from standard input
  anabranch show merged                     the folder that anabranch run has written
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from anabranch.cli.arguments import (
    add_json,
    add_policy,
    add_reading,
    check_elements,
    policy_of,
    source_of,
    whole_number,
)

if TYPE_CHECKING:
    from anabranch.model.batch import Batch
    from anabranch.model.clock import Clock
    from anabranch.model.recording import Input


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``show``."""
    parser.add_argument("file", help="a recorded stream, the folder of a run, or - for standard input")
    parser.add_argument("--at", type=whole_number, metavar="N", help="after the first N elements, not all")
    parser.add_argument("--history", action="store_true", help="every version of every event, by arrival")
    parser.add_argument(
        "--limit",
        type=whole_number,
        default=50,
        metavar="N",
        help="rows to print (default 50); --json gives all",
    )
    parser.add_argument("--no-timeline", action="store_true", help="the table alone")
    add_reading(parser)
    add_policy(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Print the relation of each input, or the history of the one there is."""
    from anabranch.cli import quarantine
    from anabranch.cli.progress import progress
    from anabranch.model.recording import Recording

    quarantine.check_target(options.quarantine, [options.file])
    policy = policy_of(options)
    valid: list[Batch] = []
    recording = Recording(policy, alone=options.file)
    if options.history:
        recording.heard = lambda _, batch: valid.append(batch)
    with progress(f"reading {options.file}") as done:
        check_elements(options.file, options.format, options.dialect)
        source = source_of(options, options.file)
        clock = source.clock()
        batches = source.batches(policy=policy, progress=done)
        for batch in _first(batches, options.at):
            recording.apply(batch)
    recording.close()
    if options.quarantine:
        quarantine.write(((options.file, v) for v in policy.violations), options.quarantine)  # type: ignore[union-attr]
    if options.history:
        _print_history(valid, recording.inputs, options, clock)
        return 0
    for name, an_input in recording.inputs.items():
        if options.json:
            _print_json(name, an_input, clock)
        else:
            _print_relation(name, an_input, options, clock)
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


def _print_json(name: str, an_input: Input, clock: Clock) -> None:
    from anabranch.cli.display import counted_events, event_fields, time_field
    from anabranch.model.freeze import freeze
    from anabranch.model.time import FOREVER

    frontier = an_input.relation.frontier
    answer = {
        "input": name,
        "attached": an_input.attached,
        "elements": an_input.relation.position,
        **time_field("frontier", frontier, clock),
        "closed": frontier == FOREVER,
        "events": [
            event_fields(event, clock)
            | {"count": count, "freeze": str(freeze(event.start, event.end, frontier))}
            for event, count in counted_events(an_input.relation)
        ],
    }
    print(json.dumps(answer, ensure_ascii=False))


def _print_relation(name: str, an_input: Input, options: argparse.Namespace, clock: Clock) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from anabranch.cli.display import counted_events, payload_shown
    from anabranch.cli.timeline import Glyphs, timeline
    from anabranch.model.clock import lifetime_text, tick_text
    from anabranch.model.freeze import freeze

    console = Console(highlight=False, markup=False, emoji=False)
    glyphs = Glyphs.of(console.encoding)
    relation = an_input.relation
    rows = counted_events(relation)
    state = "" if an_input.attached else ", detached"
    console.print(
        f"{name}: {relation.position} elements, {len(relation)} events, "
        f"stable to {glyphs.text(tick_text(relation.frontier, clock))}{state}"
    )
    shown = [
        (
            payload_shown(event.payload),
            glyphs.text(lifetime_text(event.start, event.end, clock)),
            str(count),
            str(freeze(event.start, event.end, relation.frontier)),
        )
        for event, count in rows[: options.limit]
    ]
    if shown and console.width < _NARROW + sum(max(len(row[n]) for row in shown) + 1 for n in (1, 2, 3)):
        _print_narrow(shown, console.width)
    elif shown:
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column("payload")
        table.add_column("lifetime", no_wrap=True)
        table.add_column("count", justify="right", no_wrap=True)
        table.add_column("status", no_wrap=True)
        for row in shown:
            table.add_row(*map(Text, row))
        console.print(table)
    if len(rows) > options.limit:
        console.print(glyphs.text(_more(len(rows), options.limit)))
    if not options.no_timeline:
        events = [event for event, _ in rows[: options.limit]]
        drawn = timeline(events, relation.frontier, console.width, clock, glyphs)
        print("", *drawn, sep="\n")


_NARROW = 16
"""Columns that a payload has at least in a table."""


def _print_narrow(shown: list[tuple[str, str, str, str]], width: int) -> None:
    """Events under each other, where a table would break their lifetimes."""
    for payload, lifetime, count, status in shown:
        print(payload)
        whole = f"  {lifetime}"
        print(whole if len(whole) <= width else whole.replace(", ", ",\n   "))
        print(f"  {status}" if count == "1" else f"  {count} times, {status}")


def _more(there: int, limit: int) -> str:
    return f"… and {there - limit} more (--limit {there} shows all)"


def _print_history(
    valid: list[Batch], inputs: dict[str, Input], options: argparse.Namespace, clock: Clock
) -> None:
    from anabranch.cli.display import event_fields, payload_shown
    from anabranch.cli.timeline import Glyphs
    from anabranch.model.clock import lifetime_text
    from anabranch.model.history import history

    if list(inputs) != [options.file]:
        raise ValueError(f"a history is of one stream, {options.file} records the inputs {', '.join(inputs)}")
    versions = history(valid)
    glyphs = Glyphs.of(sys.stdout.encoding)
    for version in versions if options.json else versions[: options.limit]:
        event = version.event
        if options.json:
            times = {"arrived": version.arrived, "replaced": version.replaced}
            print(json.dumps({**event_fields(event, clock), **times}, ensure_ascii=False))
        else:
            until = "now" if version.current else str(version.replaced)
            lifetime = glyphs.text(lifetime_text(event.start, event.end, clock))
            print(f"{version.arrived:>6} to {until:<6} {payload_shown(event.payload)} {lifetime}")
    if len(versions) > options.limit and not options.json:
        print(glyphs.text(_more(len(versions), options.limit)))
