"""Show two copies of one stream that look different and mean the same, and merge them while one dies.

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
    """Make two copies, compare what they denote, draw both, and merge them."""
    from random import Random

    from anabranch.cli.progress import said_if_slow
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
    if not options.json:
        _draw(copies, relations, same=same)
    with said_if_slow("the first merge on a machine is compiled for it, once; a moment"):
        merged = _merged(*copies)
    relation = Relation()
    relation.apply([element for _, out in merged for element in out])
    merges = difference(relation, relations[1]) is None
    if options.json:
        answer = {
            "same": same,
            "copies": [[line_of(element) for element in copy] for copy in copies],
            "merged": [line_of(element) for _, out in merged for element in out],
            "merged_same": merges,
        }
        print(json.dumps(answer, ensure_ascii=False))
    else:
        _tell(merged, len(relation), same=merges)
    return 0 if same and merges else 1


def _merged(east: list[Element], west: list[Element]) -> list[tuple[str, list[Element]]]:
    """Who said something and what came out of it: an element of each in turn, until east dies half way."""
    from itertools import zip_longest

    from anabranch.kernels.merge.merger import Merger

    merger = Merger("R3")
    for name in ("east", "west"):
        merger.attach(name)
    told: list[tuple[str, list[Element]]] = []
    for step, (left, right) in enumerate(zip_longest(east, west)):
        if step == min(len(east), len(west)) // 2:
            told.append(("east dies", list(merger.detach("east").elements())))
        if left is not None and "east" in merger.inputs:
            told.append(("east", merger.push("east", left)))
        if right is not None:
            told.append(("west", merger.push("west", right)))
    return told


def _tell(merged: list[tuple[str, list[Element]]], events: int, *, same: bool) -> None:
    from anabranch.model.notation import line_of

    print("\nMerged, an element of each in turn, and east dies half way:\n")
    for name, out in merged:
        if out or name == "east dies":
            said = [line_of(element) for element in out] or [""]
            print("\n".join(f"  {name if n == 0 else '':<12}{line}".rstrip() for n, line in enumerate(said)))
    count = sum(len(out) for _, out in merged)
    verdict = "the same" if same else "NOT the same"
    print(
        f"\nThe merged stream has {count} elements and denotes {verdict} {events} events: no gap, no repeat."
    )


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
