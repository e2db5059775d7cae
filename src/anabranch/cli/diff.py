"""Tell whether two streams denote the same relation.

If they do not, show the first event that differs, where it came from, and whether it can still be corrected.
Exit status: 0 same, 1 different, 2 misuse.

examples:
  anabranch diff a.jsonl b.parquet
  anabranch diff merged.jsonl reference.txt --json
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from anabranch.cli.arguments import (
    add_json,
    add_policy,
    add_reading,
    check_elements,
    check_standard_input,
    policy_of,
    source_of,
)

if TYPE_CHECKING:
    from anabranch.model.clock import Clock
    from anabranch.model.events import Difference
    from anabranch.model.relation import Relation
    from anabranch.model.validity import Violation


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``diff``."""
    parser.add_argument("left", metavar="A", help="a recorded stream, or - for standard input")
    parser.add_argument("right", metavar="B", help="another")
    add_reading(parser)
    add_policy(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Say whether the two are the same, and where they part."""
    from anabranch.cli import quarantine
    from anabranch.model.consistency import contradiction, difference

    check_standard_input([options.left, options.right])
    quarantine.check_target(options.quarantine, [options.left, options.right])
    aside: list[tuple[str, Violation]] = []
    for path in (options.left, options.right):
        check_elements(path, options.format, options.dialect)
    left, right = (_relation(path, options, aside) for path in (options.left, options.right))
    if options.quarantine:
        quarantine.write(aside, options.quarantine)
    found = difference(left, right)
    if found is None:
        print(
            json.dumps({"same": True}) if options.json else f"same: both denote the same {len(left)} events"
        )
        return 0
    final = contradiction({"left": left, "right": right}) is not None
    clock = _clock(options)
    if options.json:
        _print_json(found, clock, final=final)
    else:
        _print_difference(found, options, clock, final=final)
    return 1


def _clock(options: argparse.Namespace) -> Clock:
    """What ticks are in both; numbers where they differ about it."""
    from anabranch.model.clock import Clock

    left, right = (source_of(options, path).clock() for path in (options.left, options.right))
    return left if left is right else Clock.TICKS


def _print_json(found: Difference, clock: Clock, *, final: bool) -> None:
    from anabranch.cli.display import event_fields

    first = {
        **event_fields(found.event, clock),
        "left": found.left,
        "right": found.right,
        "more_on": "left" if found.left > found.right else "right",
        "since_element": found.arrived,
    }
    answer = {"same": False, "differences": found.events, "final": final, "first": first}
    print(json.dumps(answer, ensure_ascii=False))


def _print_difference(found: Difference, options: argparse.Namespace, clock: Clock, *, final: bool) -> None:
    from anabranch.cli.display import payload_shown
    from anabranch.model.clock import lifetime_text

    event = found.event
    side = options.left if found.left > found.right else options.right
    print(f"different: {found.events} events differ, the first is")
    print(f"  {payload_shown(event.payload)} {lifetime_text(event.start, event.end, clock)}")
    print(f"  {found.left} times in {options.left}, {found.right} times in {options.right}")
    print(f"  in {side} since element {found.arrived}")
    print(
        "  this is final: their stables exclude that they become the same"
        if final
        else "  this may still change: neither stable excludes that they become the same"
    )


def _relation(path: str, options: argparse.Namespace, aside: list[tuple[str, Violation]]) -> Relation:
    from anabranch.cli.progress import progress
    from anabranch.model.relation import Relation
    from anabranch.model.validity import Quarantine

    policy = policy_of(options)
    if isinstance(policy, Quarantine):
        policy = Quarantine(lambda violation: aside.append((path, violation)))
    relation = Relation(policy)
    with progress(f"reading {path}") as done:
        for batch in source_of(options, path).batches(policy=policy, progress=done):
            if batch.input is not None:
                error = ValueError(f"{path} records several inputs: {', '.join(batch.inputs)}")
                error.add_note("Take one of them out with: anabranch convert FILE OUT --input NAME")
                raise error
            relation.apply(batch)
    return relation
