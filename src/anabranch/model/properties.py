"""What may be relied on about a stream, as facts that imply one another.

Facts are declared by sources, derived through operators, and observed on recordings. They pick algorithms, so
a fact is only ever something that every prefix of the stream obeys (closed excepted: it is about the end).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum


class Fact(Enum):
    """One promise about a stream.

    Order is by sync time: the start of an insert, the earlier of the two ends of an adjust.
    """

    INSERT_ONLY = "there are no adjusts"
    ORDERED = "sync times never go back"
    STRICTLY_INCREASING = "sync times always rise"
    DETERMINISTIC_TIES = "elements of equal sync time come in the same order in every replica"
    KEYED = "payload and start name at most one event"
    SHRINKING = "adjusts only shorten"
    KEPT = "no event is removed"
    PERFECT = "ordered, and no adjusts"
    CLOSED = "the last stable covers every start and end"

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")

    @classmethod
    def named(cls, fact: "Fact | str") -> "Fact":
        """A fact, or the one of this name in any spelling: ``insert only``, ``insert-only``, ``INSERT_ONLY``.

        >>> Fact.named("insert-only")
        <Fact.INSERT_ONLY: 'there are no adjusts'>
        """
        if isinstance(fact, cls):
            return fact
        found = cls.__members__.get(str(fact).strip().upper().replace("-", "_").replace(" ", "_"))
        if found is None:
            error = ValueError(f"a fact about a stream has a name, {fact!r} is none")
            error.add_note(f"There are: {', '.join(map(str, cls))}.")
            raise error
        return found


_IMPLICATIONS: tuple[tuple[frozenset[Fact], Fact], ...] = tuple(
    (frozenset(premises), fact)
    for premises, fact in (
        ((Fact.STRICTLY_INCREASING,), Fact.ORDERED),
        ((Fact.STRICTLY_INCREASING,), Fact.DETERMINISTIC_TIES),
        ((Fact.STRICTLY_INCREASING,), Fact.KEYED),
        ((Fact.INSERT_ONLY,), Fact.SHRINKING),
        ((Fact.INSERT_ONLY,), Fact.KEPT),
        ((Fact.INSERT_ONLY, Fact.ORDERED), Fact.PERFECT),
        ((Fact.PERFECT,), Fact.INSERT_ONLY),
        ((Fact.PERFECT,), Fact.ORDERED),
    )
)


@dataclass(frozen=True, slots=True)
class Properties:
    """Facts, with all that they imply; the more facts, the more special the stream.

    >>> Properties.of(Fact.STRICTLY_INCREASING, Fact.INSERT_ONLY) >= Properties.of(Fact.PERFECT, Fact.KEYED)
    True
    """

    facts: frozenset[Fact] = frozenset()

    def __post_init__(self) -> None:
        facts = set(self.facts)
        while new := {fact for premises, fact in _IMPLICATIONS if premises <= facts} - facts:
            facts |= new
        object.__setattr__(self, "facts", frozenset(facts))

    @classmethod
    def of(cls, *facts: Fact | str) -> "Properties":
        """These facts and what they imply."""
        return cls(frozenset(map(Fact.named, facts)))

    def __ge__(self, other: "Properties") -> bool:
        """Whatever is true of streams with the other properties is true of these."""
        return self.facts >= other.facts

    def __and__(self, other: "Properties") -> "Properties":
        """What two streams have in common."""
        return Properties(self.facts & other.facts)

    def __or__(self, other: "Properties") -> "Properties":
        """What is true of one stream by two accounts."""
        return Properties(self.facts | other.facts)

    def without(self, fact: Fact) -> "Properties":
        """What is left when a fact turns out not to hold: nothing that rests on it, or on what implied it.

        >>> str(Properties.of(Fact.STRICTLY_INCREASING, Fact.INSERT_ONLY).without(Fact.STRICTLY_INCREASING))
        'insert only, ordered, shrinking, kept, perfect'
        """
        gone = {one for one in self.facts if fact in Properties.of(one)}
        return Properties(self.facts - Properties(frozenset(gone)).facts)

    def of_channels(self) -> "Properties":
        """What is true of a stream whose channels each have these properties, however they are interleaved.

        There are no adjusts, adjusts only shorten and no event is removed: each element is one of a channel,
        so what is true of every element stays true. A key stays one where all that is said of a payload and
        start keeps to one channel, as it must anyhow for its adjusts to come after it. Nothing about order
        stays: an element of one channel may come between any two of another. Nor is such a stream closed: its
        stable is the least of its channels', and others may have events beyond it.

        >>> str(Properties.of(Fact.STRICTLY_INCREASING, Fact.INSERT_ONLY, Fact.CLOSED).of_channels())
        'insert only, keyed, shrinking, kept'
        """
        return Properties(self.facts & {Fact.INSERT_ONLY, Fact.KEYED, Fact.SHRINKING, Fact.KEPT})

    def __contains__(self, fact: Fact) -> bool:
        return fact in self.facts

    def __iter__(self) -> Iterator[Fact]:
        return (fact for fact in Fact if fact in self.facts)

    def __str__(self) -> str:
        return ", ".join(str(fact) for fact in self) or "none"


class Case(Enum):
    """The restrictions of LM III-C, from the narrowest to none; each names what its streams promise."""

    R0 = Properties.of(Fact.INSERT_ONLY, Fact.STRICTLY_INCREASING)
    R1 = Properties.of(Fact.PERFECT, Fact.DETERMINISTIC_TIES)
    R2 = Properties.of(Fact.PERFECT, Fact.KEYED)
    R3 = Properties.of(Fact.KEYED)
    R4 = Properties.of()

    def admits(self, properties: Properties) -> bool:
        """Streams with these properties are within the restriction."""
        return properties >= self.value

    @classmethod
    def narrowest(cls, inputs: Iterable[Properties]) -> "Case":
        """The first case that admits every one of these."""
        every = list(inputs)
        return next(case for case in cls if all(case.admits(properties) for properties in every))
