"""Show two copies of one stream that look different and mean the same.

examples:
  anabranch demo
  anabranch demo --seed 3
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from anabranch.cli.arguments import add_json

if TYPE_CHECKING:
    from anabranch.model.elements import Element
    from anabranch.model.relation import Relation


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``demo``."""
    parser.add_argument("--seed", type=int, default=11, help="another seed, another stream (default 11)")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Make two copies, compare what they denote, and draw both."""
    from random import Random

    from anabranch.model.consistency import difference
    from anabranch.model.notation import line_of
    from anabranch.model.properties import Case
    from anabranch.model.relation import Relation
    from anabranch.testing.presentations import replicas
    from anabranch.testing.references import Shape

    shape = Shape(events=8, payloads=6, horizon=24)
    _, copies = replicas(Random(options.seed), 2, case=Case.R3, shape=shape)
    relations = []
    for copy in copies:
        relation = Relation()
        relation.apply(copy)
        relations.append(relation)
    same = difference(*relations) is None
    if options.json:
        answer = {"same": same, "copies": [[line_of(element) for element in copy] for copy in copies]}
        print(json.dumps(answer, ensure_ascii=False))
    else:
        _draw(copies, relations, same=same)
    return 0 if same else 1


def _draw(copies: list[list[Element]], relations: list[Relation], *, same: bool) -> None:
    from itertools import zip_longest

    from rich.console import Console

    from anabranch.cli.timeline import timeline
    from anabranch.model.notation import line_of

    lines = [[line_of(element) for element in copy] for copy in copies]
    wide = max(len(line) for column in lines for line in column) + 4
    print("Two physical streams, as they arrive (+ insert, ~ adjust, | stable):\n")
    print(f"  {'east':<{wide}}west")
    for left, right in zip_longest(*lines, fillvalue=""):
        print(f"  {left:<{wide}}{right}".rstrip())
    width = Console().width
    for name, copy, relation in zip(("east", "west"), copies, relations, strict=True):
        half = _prefix(copy)
        print(f"\nWhat {name} denotes half way, after {len(copy) // 2} of its {len(copy)} elements:\n")
        for line in timeline(half.events(), half.frontier, width):
            print(f"  {line}")
        print("\nand at the end:\n")
        for line in timeline(relation.events(), relation.frontier, width):
            print(f"  {line}")
    verdict = "the same" if same else "NOT the same"
    print(
        f"\nThe two have {len(copies[0])} and {len(copies[1])} elements in different orders with different "
        f"corrections; at the end they denote {verdict} {len(relations[0])} events."
    )


def _prefix(copy: list[Element]) -> Relation:
    from anabranch.model.relation import Relation

    relation = Relation()
    relation.apply(copy[: len(copy) // 2])
    return relation
