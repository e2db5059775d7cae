"""What an expression is once it is written: columns, literals, and calls of functions.

Trees are values: they compare by what they say, so that two plans written alike are alike. A tree knows no
types but those of its literals; what it means is decided where it meets the columns of a stream.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from anabranch.errors import AnabranchError


class ExpressionError(AnabranchError, TypeError):
    """An expression has no meaning: on the columns it is used on, or on any."""


@dataclass(frozen=True, slots=True)
class Column:
    """The value of a payload column."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """One value for all rows, as plain Python has it; what has to do with time is the number in its unit.

    Two are equal if they have one type and are written alike: 0.0 is not -0.0, and NaN is NaN.
    """

    value: Any
    type: pa.DataType
    adapts: bool = False
    """Takes the type of what it meets, where that holds the value; a type that was asked for does not."""

    def scalar(self) -> pa.Scalar:
        """The value as Arrow has it."""
        return pa.scalar(self.value, self.type)

    def _said(self) -> tuple[str, pa.DataType, bool]:
        return repr(self.value), self.type, self.adapts

    def __eq__(self, other: object) -> bool:
        return self._said() == other._said() if isinstance(other, Literal) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._said())


@dataclass(frozen=True, slots=True)
class Start:
    """The start of the event, in ticks."""


@dataclass(frozen=True, slots=True)
class End:
    """The end of the event, in ticks; it may still change where the stream has adjusts."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the row's values, and what it is told for all rows."""

    function: str
    args: tuple["Tree", ...]
    options: tuple[tuple[str, Any], ...] = ()


Tree: TypeAlias = Column | Literal | Start | End | Call


def parts_of(tree: Tree) -> Iterator[Tree]:
    """The tree and all within it, from the left."""
    yield tree
    if isinstance(tree, Call):
        for arg in tree.args:
            yield from parts_of(arg)


def columns_of(tree: Tree) -> tuple[str, ...]:
    """The columns that a tree reads, each once, from the left."""
    return tuple(dict.fromkeys(part.name for part in parts_of(tree) if isinstance(part, Column)))


def uses_end(tree: Tree) -> bool:
    """Whether a tree reads the end of an event: its value changes where the event is adjusted."""
    return any(isinstance(part, End) for part in parts_of(tree))


def plain_column(tree: Tree) -> str | None:
    """The column that a tree is, and nothing more."""
    return tree.name if isinstance(tree, Column) else None


def root_name(tree: Tree) -> str:
    """What a tree is called that was given no name: as its leftmost leaf."""
    match tree:
        case Column(name):
            return name
        case Literal():
            return "literal"
        case Start():
            return "start"
        case End():
            return "end"
        case Call("when", (_, value, *_)):
            return root_name(value)
        case Call(function, args):
            return root_name(args[0]) if args else function
