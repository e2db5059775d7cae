"""Assertions about streams, for tests; each failure shows the streams in the text notation."""

from collections.abc import Iterable, Mapping

from anabranch.model.consistency import contradiction, difference, incompatibility
from anabranch.model.elements import Element, Event, Insert
from anabranch.model.notation import text
from anabranch.model.relation import Relation


def assert_valid(stream: Iterable[Element]) -> Relation:
    """Every element may follow those before it; the relation that the stream denotes."""
    relation = Relation()
    relation.apply(stream)
    return relation


def assert_denotes(stream: Iterable[Element], events: Iterable[Event]) -> None:
    """The stream means exactly these events."""
    elements = list(stream)
    expected = assert_valid([Insert(event.payload, event.start, event.end) for event in events])
    found = difference(assert_valid(elements), expected)
    assert found is None, f"{found}\n{text(elements)}"


def assert_equivalent(one: Iterable[Element], other: Iterable[Element]) -> None:
    """Both streams mean the same events."""
    left, right = list(one), list(other)
    found = difference(assert_valid(left), assert_valid(right))
    assert found is None, f"{found}\nleft\n{text(left)}\nright\n{text(right)}"


def assert_consistent(streams: Mapping[str, Iterable[Element]]) -> None:
    """The streams can still become one."""
    found = contradiction({name: assert_valid(stream) for name, stream in streams.items()})
    assert found is None, str(found)


def assert_compatible(output: Iterable[Element], inputs: Mapping[str, Iterable[Element]]) -> None:
    """The output can follow its inputs wherever they go."""
    relations = {name: assert_valid(stream) for name, stream in inputs.items()}
    found = incompatibility(assert_valid(output), relations)
    assert found is None, str(found)
