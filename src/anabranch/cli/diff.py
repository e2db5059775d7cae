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
from typing import TYPE_CHECKING, Any

from anabranch.cli.arguments import add_json, add_policy, add_reading, policy_of, source_of

if TYPE_CHECKING:
    from anabranch.model.relation import Relation


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``diff``."""
    parser.add_argument("left", metavar="A", help="a recorded stream, or - for standard input")
    parser.add_argument("right", metavar="B", help="another")
    add_reading(parser)
    add_policy(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Say whether the two are the same, and where they part."""
    from anabranch.cli.show import show_payload
    from anabranch.model.consistency import contradiction, difference
    from anabranch.model.json_lines import json_payload
    from anabranch.model.notation import lifetime_text
    from anabranch.model.time import FOREVER

    left, right = _relation(options.left, options), _relation(options.right, options)
    found = difference(left, right)
    final = contradiction({"left": left, "right": right}) is not None
    if options.json:
        answer: dict[str, Any] = {"same": found is None}
        if found:
            event = found.event
            answer |= {
                "differences": found.events,
                "final": final,
                "first": {
                    "payload": json_payload(event.payload, as_text=True),
                    "start": event.start,
                    "end": None if event.end == FOREVER else event.end,
                    "left": found.left,
                    "right": found.right,
                    "more_on": "left" if found.left > found.right else "right",
                    "since_element": found.arrived,
                },
            }
        print(json.dumps(answer, ensure_ascii=False))
    elif found is None:
        print(f"same: both denote the same {len(left)} events")
    else:
        event = found.event
        side = options.left if found.left > found.right else options.right
        print(f"different: {found.events} events differ, the first is")
        print(f"  {show_payload(event.payload)} {lifetime_text(event.start, event.end)}")
        print(f"  {found.left} times in {options.left}, {found.right} times in {options.right}")
        print(f"  in {side} since element {found.arrived}")
        print(
            "  this is final: their stables exclude that they become the same"
            if final
            else "  this may still change: neither stable excludes that they become the same"
        )
    return 0 if found is None else 1


def _relation(path: str, options: argparse.Namespace) -> Relation:
    from anabranch.cli import quarantine
    from anabranch.cli.progress import progress
    from anabranch.model.relation import Relation

    policy = policy_of(options)
    relation = Relation(policy)
    with progress(f"reading {path}") as done:
        for batch in source_of(options, path).batches(policy=policy, progress=done):
            if batch.input is not None:
                error = ValueError(f"{path} records several inputs: {', '.join(batch.inputs)}")
                error.add_note("Take one of them out with: anabranch convert FILE OUT --input NAME")
                raise error
            relation.apply(batch)
    if options.quarantine:
        quarantine.write(policy.violations, options.quarantine)  # type: ignore[union-attr]
    return relation
