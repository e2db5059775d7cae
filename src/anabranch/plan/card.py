"""What stands on a box of a picture, and how much room it needs.

Nobody knows the reader's fonts, so words are taken to be as wide as in the widest that are likely (DejaVu
Sans, Verdana; any monospace): in others there is room left over, and in none do words leave their box.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal
from unicodedata import east_asian_width

from anabranch.plan.explain import known_of, one_line
from anabranch.plan.layers import ARRIVAL
from anabranch.plan.node import Node
from anabranch.plan.source import Source

Kind = Literal["source", "step", "state", "output"]

ROOM = 198.0
"""How wide words may be."""
SIDE, TOP = 12.0, 8.0
KIND, WORD, SAYS, KNOWN = 10.0, 13.0, 11.0, 10.5
"""Sizes of letters: what kind of box it is, the word of the operator, what it does, what is known of it."""
KIND_LINE, WORD_LINE, SAYS_LINE, KNOWN_LINE, RULE = 13.0, 17.0, 15.0, 14.0, 9.0

_NARROW, _WIDE = frozenset("iljtfrI.,:;'|!()[]{} \N{NO-BREAK SPACE}/\\-`\""), frozenset("mwMW@%+<>=~^#—…→∞")
_HELD = "\N{NO-BREAK SPACE}"
_CALL = re.compile(r"(\w+)\((.*)\)", re.DOTALL)


@dataclass(frozen=True)
class Card:
    """A box: its kind in small letters, its word, what it does, and what is known of what comes of it."""

    kind: Kind
    heading: str
    word: str
    says: Sequence[str] = ()
    known: str = ""
    mark: str = ""
    """Which of its ways the operator goes."""
    full: str = ""
    """All of it, uncut."""
    least: float = 0.0
    """How high it is if there is little to say."""

    @cached_property
    def word_lines(self) -> list[str]:
        """The word, in two lines at most."""
        return wrapped(self.word, ROOM - self.mark_width, partial(sans_width, size=WORD, bold=True), 2)

    @cached_property
    def says_lines(self) -> list[str]:
        """What it does, in a few lines."""
        measure = partial(mono_width, size=SAYS)
        return [line for part in self.says for line in wrapped(part, ROOM, measure, 4)]

    @cached_property
    def known_lines(self) -> list[str]:
        """What is known, in a few lines that break between facts where they can."""
        facts = ", ".join(one.replace(" ", _HELD) for one in self.known.split(", "))
        lines = wrapped(facts, ROOM, partial(sans_width, size=KNOWN), 4)
        return [line.replace(_HELD, " ") for line in lines]

    @property
    def mark_width(self) -> float:
        """The room that the mark takes from the word."""
        return sans_width(self.mark, size=KIND, bold=True) + 22 if self.mark else 0.0

    @cached_property
    def width(self) -> float:
        """Of the box."""
        widths = [
            sans_width(self.heading, size=KIND),
            *(sans_width(one, size=WORD, bold=True) + self.mark_width for one in self.word_lines),
            *(mono_width(one, size=SAYS) for one in self.says_lines),
            *(sans_width(one, size=KNOWN) for one in self.known_lines),
        ]
        return round(max(*widths, 64.0) + 2 * SIDE)

    @property
    def height(self) -> float:
        """Of the box."""
        return max(self.said_height, self.least)

    @cached_property
    def said_height(self) -> float:
        """Of what stands on it."""
        return (
            2 * TOP
            + (KIND_LINE if self.heading else 0)
            + WORD_LINE * len(self.word_lines)
            + SAYS_LINE * len(self.says_lines)
            + (RULE + KNOWN_LINE * len(self.known_lines) if self.known else 0)
        )


def operator_card(node: Node) -> Card:
    """A node; what is known is on it where that is not what is known of all its inputs."""
    words, known = one_line(node.words()), known_of(node)
    full = f"{words}\n{known}"
    if isinstance(node, Source):
        name = one_line(node.name)
        says = [words.removeprefix(f"{name}: "), _columns(node)]
        return Card("source", node.word, name, says, known, node.mark, full)
    word, rest = _word_and_rest(node.word, words)
    says = [part.removeprefix(f"{node.mark}: ") for part in rest.split("; ", 1)] if rest else []
    same = {known} == {known_of(one) for one in node.inputs}
    least = ARRIVAL * (len(node.inputs) - 1) + 28
    kind: Kind = "step" if node.stateless else "state"
    return Card(kind, "", word, says, "" if same else known, node.mark, full, least)


def output_card(name: str, node: Node, kind: str) -> Card:
    """Where a stream comes out."""
    known = known_of(node)
    word, heading = (one_line(name), kind) if name else (kind, "")
    full = f"{kind} {word}\n{known}" if name else f"{kind}\n{known}"
    return Card("output", heading, word, [_columns(node)], known, "", full)


def _columns(node: Node) -> str:
    return one_line(", ".join(node.schema.names)) or "no columns"


def _word_and_rest(word: str, words: str) -> tuple[str, str]:
    """The word of an operator as the user said it, and what else there is to say."""
    if words == word or (words.startswith(word) and not words[len(word)].isalnum()):
        return word, words[len(word) :].lstrip(",;: ")
    called = _CALL.fullmatch(words)
    return (called[1], called[2].replace("'", "")) if called else (word, words)


def wrapped(words: str, room: float, measure: Callable[[str], float], most: int) -> list[str]:
    """Words in lines that fit the room; what is more than so many lines is cut.

    >>> wrapped("one two three", 7, len, 2), wrapped("one two three", 7, len, 1)
    (['one two', 'three'], ['one tw…'])
    """
    lines: list[str] = []
    left = words.strip()
    while left and len(lines) < most:
        line = _fitting(left, room, measure)
        lines.append(line.rstrip())
        left = left[len(line) :].lstrip()
    if left:
        last = lines[-1]
        while last and measure(f"{last}…") > room:
            last = last[:-1]
        lines[-1] = f"{last.rstrip()}…"
    return lines


def _fitting(words: str, room: float, measure: Callable[[str], float]) -> str:
    """The beginning that fits: to a space where there is one late enough, else to a sign."""
    end = len(words)
    if measure(words) > room:
        end = 1
        while measure(words[: end + 1]) <= room:
            end += 1
        for stops in (" ", _HELD, ",.;:/_-("):
            after = max(words.rfind(stop, end // 3, end + stop.isspace()) for stop in stops) + 1
            if after > 0:
                return words[:after]
    return words[:end]


def mono_width(words: str, *, size: float) -> float:
    """About how wide words are in letters of one width."""
    return sum(2 if _is_double(one) else 1 for one in words) * size * 0.612


def sans_width(words: str, *, size: float, bold: bool = False) -> float:
    """About how wide words are in the widest of the fonts that are likely."""
    return sum(map(_letter, words)) * size * (1.12 if bold else 1.0)


def _letter(one: str) -> float:
    if one in _NARROW:
        return 0.42
    if one in _WIDE or _is_double(one):
        return 1.02
    return 0.79 if one.isupper() or one == "&" else 0.64


def _is_double(one: str) -> bool:
    return east_asian_width(one) in "WF"
